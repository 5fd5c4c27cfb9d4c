"""A streaming flow: its query runs in as many batches as the sources' limits ask for, until what was there is written.

Decision 0119.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from headwater.checkpoints.layout import FlowState
from headwater.checkpoints.offsets import last_committed_batch, last_planned_batch, query_id
from headwater.definitions.dataset import Dataset
from headwater.definitions.expectation import ViolationAction, needs_judgement
from headwater.delta_log.table_history import head_version, table_exists
from headwater.errors import LeaseLost
from headwater.event_log.details import FlowStatus
from headwater.preflight.state_checks import store_names
from headwater_spark.delta_writes.retired_epochs import ids_before, retire
from headwater_spark.delta_writes.tables import create_table
from headwater_spark.execution.batch_records import BatchRecords
from headwater_spark.execution.file_cleaning import clean_sources
from headwater_spark.execution.flow_run import FlowRun
from headwater_spark.execution.kept_settings import kept_settings
from headwater_spark.execution.recounting import OBSERVATION, recount_batches
from headwater_spark.execution.start_checks import check_flow, plan_of, source_identities, versions
from headwater_spark.execution.stream_start import StartedStream, start_stream
from headwater_spark.execution.update_context import LAST_PROGRESS, UpdateContext
from headwater_spark.quarantine.unreadable_files import UnreadableFile, without_files
from headwater_spark.rules.expectations import apply_expectations
from headwater_spark.rules.judgement import mark_rows
from headwater_spark.rules.source_records import with_source
from headwater_spark.sources.source_schemas import check_source_schemas, stream_schemas

# Who stops an update by hand has the time; under Airflow, which kills a task after five seconds, the task says less.
STOP_SECONDS = 30.0
_RECORDED_SECONDS = 2.0


def run_stream(run: FlowRun, unreadable: Sequence[UnreadableFile] = ()) -> None:
    """Run a flow's query until what was available has been written.

    Args:
        unreadable: files that can't be read; they are left out, and kept in the quarantine.

    Raises:
        RefusedForSafety: where position, table and sources no longer belong together; nothing was read.
        Whatever Spark or a sink's function throws, for ``flow_error`` to name.
    """
    context, table = run.context, run.delta_table
    context.check_lease()
    known = run.checkpoint.surviving_state()
    start = check_flow(run, known or FlowState())
    state = _opened(run, known)
    folder = run.checkpoint.epoch_folder(state.epoch)
    batches = BatchRecords(run, state)
    ended = context.listener.expect(context.query_name(run.name), batches.on_progress)
    # A query keeps the settings it was started with.
    with run.settings(state):
        frame = _prepared(run, state, unreadable)
    recounts = recount_batches(run, state, frame, batches.unrecorded)
    with run.settings(state):
        started = start_stream(run, state, frame, unreadable)
    batches.started(started, recounts)
    _await(context, started, ended, folder, lambda: _note_destination(run))
    if table is not None and not table_exists(table):  # no row ever came: the table is there all the same
        create_table(context.spark, run.dataset, table, context.pipeline.evaluation.table_schema(run.dataset))
    batches.record_missed()
    batches.check_conservation()
    stopped = context.stop_requested.is_set()
    context.check_lease()
    run.checkpoint.update_state(
        sink_id=run.destination_id(),
        sink_version=head_version(table) if table is not None else None,
        completed=not stopped,
        definition_hash=context.pipeline.manifest.definition_hash,
        query_id=query_id(folder),
        plan=plan_of(run),
        state_stores=store_names(folder),
        sources=source_identities(start, state),
        versions=versions(context),
    )
    run.outcome.status = FlowStatus.STOPPED if stopped else FlowStatus.COMPLETED
    if not stopped:
        clean_sources(run)


def _opened(run: FlowRun, known: FlowState | None) -> FlowState:
    """The state of the epoch that runs: the one that is known, or one that was never used."""
    epoch = known.epoch if known is not None else run.context.unused_epoch(run.dataset.name, run.name)
    if epoch > 0:
        ids = ids_before(run.checkpoint, run.identity, epoch)
        retire(run.context.spark, (run.delta_table, run.context.quarantine_path(run.dataset)), ids)
    settings = kept_settings(run, known or FlowState())
    return run.checkpoint.update_state(epoch=epoch, completed=False, state_settings=settings)


def _prepared(run: FlowRun, state: FlowState, unreadable: Sequence[UnreadableFile]) -> DataFrame:
    """The flow's query with its rules, over sources whose columns are still those of before."""
    frame = run.rows()
    datasets = run.context.pipeline.registry.datasets()
    own = {str(run.context.table_path(dataset)) for dataset in datasets if dataset.stored}
    schemas = stream_schemas(frame, own)
    check_source_schemas(run.flow, state.source_schemas, schemas)
    run.checkpoint.update_state(source_schemas=schemas.to_remember(state.source_schemas))
    return _checked(frame, run.dataset, unreadable, count=run.delta_table is None)


def _checked(
    frame: DataFrame, dataset: Dataset, unreadable: Sequence[UnreadableFile], *, count: bool
) -> DataFrame:
    """The frame with its rules, or with what judging its batches needs."""
    rules = dataset.expectations
    if needs_judgement(rules):
        # Nothing may stand between the files and the condition on their names.
        return mark_rows(without_files(with_source(frame), unreadable), rules)
    if any(rule.action is ViolationAction.FAIL for rule in rules):
        frame = with_source(frame, cheap=True)  # for the message
    return apply_expectations(frame, rules, OBSERVATION, count=count)


def _note_destination(run: FlowRun) -> None:
    """Say early what the flow writes to: a driver that is killed in its first update says nothing later."""
    state = run.checkpoint.read_state()
    if state is not None and state.sink_id is None and (sink := run.destination_id()) is not None:
        run.checkpoint.update_state(sink_id=sink)


def _await(
    context: UpdateContext,
    started: StartedStream,
    ended: threading.Event,
    folder: Path,
    meanwhile: Callable[[], None],
) -> None:
    query: StreamingQuery = started.query
    before = last_committed_batch(folder)
    try:
        # Half seconds work; the annotation knows whole ones only.
        while not query.awaitTermination(0.5):  # type: ignore[arg-type]
            meanwhile()
            _stop_without_lease(context, query)
            # However short the time is: what is begun takes in one batch, if there is one.
            late = context.time_is_up and last_committed_batch(folder) != before
            if context.stop_requested.is_set() or late:
                end_of_batch(query, folder, stop_seconds() if context.stop_requested.is_set() else None)
                query.stop()
                break
    except Exception:
        if started.writer is not None and started.writer.error is not None:
            raise started.writer.error from None
        raise
    finally:
        ended.wait(LAST_PROGRESS.total_seconds())


def stop_seconds() -> float:
    """How long a stop waits for the batch in flight: HEADWATER_STOP_SECONDS."""
    return float(os.environ.get("HEADWATER_STOP_SECONDS", STOP_SECONDS))


def end_of_batch(query: StreamingQuery, folder: Path, seconds: float | None) -> None:
    """Wait until the batch in flight is done and has been told of, for so long at most.

    One that takes longer is given up and repeated by the next update: nothing is lost or doubled, but its work. What the
    query begins behind it before it is stopped is given up, too.
    """
    in_flight = last_planned_batch(folder)
    ends = None if seconds is None else time.monotonic() + seconds
    done: float | None = None
    while in_flight is not None and query.isActive:
        now = time.monotonic()
        if last_committed_batch(folder) == in_flight:
            # Its progress comes a moment after its mark, and before the next plan, or the query's own end.
            done = done or now
        if (
            last_planned_batch(folder) != in_flight
            or (ends and now >= ends)
            or (done and now > done + _RECORDED_SECONDS)
        ):
            return
        time.sleep(0.05)


def _stop_without_lease(context: UpdateContext, query: StreamingQuery) -> None:
    """A batch in flight may still end: Delta then knows it by its number, and the other holder's is left out."""
    try:
        context.check_lease()
    except LeaseLost:
        query.stop()
        raise
