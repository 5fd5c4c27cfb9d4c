"""A streaming flow: its query runs in as many batches as the sources' limits require, until the available data is written.

Decision 0119.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from headwater.checkpoints.flow_role import FlowRole
from headwater.checkpoints.layout import REMEMBERED, FlowState
from headwater.checkpoints.newest_files import newest_files
from headwater.checkpoints.offsets import (
    last_committed_batch,
    last_planned_batch,
    query_id,
    read_offsets,
    settings_of,
)
from headwater.definitions.dataset import Dataset
from headwater.definitions.expectation import ViolationAction, needs_judgement
from headwater.definitions.flow_settings import is_real_time
from headwater.definitions.source import SourceKind
from headwater.delta_log.table_history import head_version, table_exists
from headwater.errors import LeaseLost
from headwater.event_log.details import FlowStatus
from headwater.preflight.flow_start import FlowStart
from headwater.preflight.state_checks import store_names
from headwater.storage.place import Place
from headwater_spark.delta_writes.retired_epochs import ids_before, retire
from headwater_spark.delta_writes.tables import create_table
from headwater_spark.execution.batch_records import BatchRecords
from headwater_spark.execution.column_types import check_column_types
from headwater_spark.execution.file_cleaning import clean_sources
from headwater_spark.execution.fixed_settings import fixed_settings
from headwater_spark.execution.flow_run import FlowRun
from headwater_spark.execution.imported_position import take_over
from headwater_spark.execution.kept_stream import KeptStream
from headwater_spark.execution.real_time import check_cores, runs_in_real_time, wait_for_position
from headwater_spark.execution.recounting import OBSERVATION, recount_batches
from headwater_spark.execution.start_checks import check_flow, plan_of, source_identities, versions
from headwater_spark.execution.stream_start import StartedStream, start_stream
from headwater_spark.execution.update_context import LAST_PROGRESS, UpdateContext
from headwater_spark.quarantine.unreadable_files import UnreadableFile, without_files
from headwater_spark.rules.expectations import apply_expectations
from headwater_spark.rules.judgement import mark_rows
from headwater_spark.rules.one_pass import can_collect, render
from headwater_spark.rules.source_records import with_source
from headwater_spark.sources.source_schemas import OUTPUT, check_source_schemas, stream_schemas

# Enough for an update that is stopped by hand; Airflow, which kills a task after five seconds, sets a shorter time.
STOP_SECONDS = 30.0
_RECORDED_SECONDS = 2.0
_LOOK_SECONDS = 0.05
# Each look is two requests.
_LOOK_SECONDS_ON_A_STORE = 1.0
# Waits until a query can be stopped, for so many seconds at most.
Finish = Callable[[StreamingQuery, Place, float | None], None]


def run_stream(run: FlowRun, unreadable: Sequence[UnreadableFile] = ()) -> None:
    """Run a flow's query until the available data has been written.

    Args:
        unreadable: files that can't be read; they are excluded, and quarantined.

    Raises:
        RefusedForSafety: position, table and sources no longer belong together; nothing was read.
        Whatever Spark or a sink's function throws, for ``flow_error`` to name.
    """
    context = run.context
    context.check_lease()
    check_cores(run)
    if is_real_time(run.flow.spark_conf) and not runs_in_real_time(run):
        context.say(
            f"BATCHES    {run.name} runs in batches: real-time mode is for continuous updates.", flow=run.name
        )
    take_over(run)
    surviving = run.checkpoint.surviving_state()
    start = check_flow(run, surviving or FlowState())
    state = _opened(run, surviving)
    _run_query(run, start, state, unreadable)
    stopped = context.stop_requested.is_set()
    context.check_lease()
    _save_position(run, start, state, completed=not stopped)
    run.outcome.status = FlowStatus.STOPPED if stopped else FlowStatus.COMPLETED
    if not stopped:
        clean_sources(run)


def _run_query(
    run: FlowRun, start: FlowStart, state: FlowState, unreadable: Sequence[UnreadableFile]
) -> None:
    """Run the query to its end, with a record of each batch."""
    context, table = run.context, run.delta_table
    batches = BatchRecords(run, state)
    ended = context.listener.expect(context.query_name(run.name), batches.on_progress)
    # A query keeps the settings it was started with.
    with run.settings(state):
        frame = _prepared(run, state, unreadable)
    recounts = recount_batches(run, state, frame, batches.unrecorded)
    with run.settings(state):
        started = start_stream(run, state, frame, unreadable)
    batches.started(started, recounts)

    saved = False

    def meanwhile() -> None:
        nonlocal saved
        saved = saved or _save_destination(run)
        if context.continuous is not None:
            kept.look()

    kept = KeptStream(run, started.query, batches, lambda: _save_position(run, start, state, completed=False))
    finish: Finish = wait_for_batch
    if runs_in_real_time(run):
        finish = partial(wait_for_position, recorded=lambda: batches.all_recorded)
    _await(context, started, ended, run.checkpoint.epoch_folder(state.epoch), meanwhile, kept.is_idle, finish)
    if table is not None and not table_exists(table):  # no row has been written, but readers need the table
        create_table(context.spark, run.dataset, table, context.pipeline.evaluation.table_schema(run.dataset))
    batches.record_missed()
    batches.check_conservation()


def _save_position(run: FlowRun, start: FlowStart, state: FlowState, *, completed: bool) -> None:
    """Save what the checks of the flow's next start compare."""
    folder, table = run.checkpoint.epoch_folder(state.epoch), run.delta_table
    kept_out = _version(run.context.quarantine_path(run.dataset))
    run.checkpoint.update_state(
        of_epoch=state.epoch,
        sink_id=run.destination_id(),
        table=_address(table),
        has_quarantine=kept_out is not None,
        quarantine_version=kept_out,
        change_memory=_remembered(run),
        sink_version=head_version(table) if table is not None else None,
        completed=completed,
        definition_hash=run.context.pipeline.manifest.definition_hash,
        query_id=query_id(folder),
        plan=plan_of(run),
        state_stores=store_names(folder),
        batch_settings=_batch_settings(folder, state),
        sources=source_identities(start, state),
        newest_files=newest_files(folder, state.newest_files) if _reads_files(start) else {},
        versions=versions(run.context),
    )


def _batch_settings(folder: Place, state: FlowState) -> Mapping[str, str]:
    """The settings in the offset entries of an epoch that keeps state: Spark wrote them at its first batch, and keeps them."""
    batch = last_planned_batch(folder) if state.state_settings and not state.batch_settings else None
    return state.batch_settings if batch is None else settings_of(read_offsets(folder, batch))


def _reads_files(start: FlowStart) -> bool:
    return any(source.kind is SourceKind.FILES for source in start.sources or ())


def _address(table: Place | None) -> str | None:
    return None if table is None else str(table)


def _remembered(run: FlowRun) -> int | None:
    """The version of what AUTO CDC remembers beside the table; None where that is nothing, or the flow is another one."""
    if run.role is not FlowRole.CHANGES:
        return None
    return _version(run.context.change_memory(run.dataset.name) / REMEMBERED)


def _version(table: Place | None) -> int | None:
    """The version of a table, None where there is none."""
    version = head_version(table) if table is not None else -1
    return version if version >= 0 else None


def _opened(run: FlowRun, surviving: FlowState | None) -> FlowState:
    """The state of the epoch that runs: the surviving one, or one that was never used."""
    epoch = surviving.epoch if surviving is not None else run.context.unused_epoch(run.dataset.name, run.name)
    if epoch > 0:
        ids = ids_before(run.checkpoint, run.identity, epoch)
        retire(run.context.spark, (run.delta_table, run.context.quarantine_path(run.dataset)), ids)
    settings = fixed_settings(run, surviving or FlowState())
    return run.checkpoint.update_state(epoch=epoch, completed=False, state_settings=settings, role=run.role)


def _prepared(run: FlowRun, state: FlowState, unreadable: Sequence[UnreadableFile]) -> DataFrame:
    """The flow's query with its rules, over sources whose columns have not changed."""
    frame = run.rows()
    datasets = run.context.pipeline.registry.datasets()
    tables = {str(run.context.table_path(dataset)) for dataset in datasets if dataset.stored}
    schemas = stream_schemas(frame, tables)
    check_source_schemas(run.flow, state.source_schemas, schemas)
    if state.source_schemas.get(OUTPUT) != schemas.columns[OUTPUT]:
        check_column_types(run, frame.schema)
    run.checkpoint.update_state(source_schemas=schemas.to_remember(state.source_schemas))
    one_pass = not state.state_settings
    return _checked(frame, run.dataset, unreadable, count=run.delta_table is None, one_pass=one_pass)


def _checked(
    frame: DataFrame,
    dataset: Dataset,
    unreadable: Sequence[UnreadableFile],
    *,
    count: bool,
    one_pass: bool,
) -> DataFrame:
    """The frame with its rules, or with the columns that judging its batches needs."""
    rules = dataset.expectations
    if needs_judgement(rules):
        # The condition on file names has to be directly above the files.
        marked = mark_rows(without_files(with_source(frame), unreadable), rules)
        return render(marked, rules) if one_pass and can_collect(marked.schema, rules) else marked
    if any(rule.action is ViolationAction.FAIL for rule in rules):
        frame = with_source(frame, cheap=True)  # for the message
    return apply_expectations(frame, rules, OBSERVATION, count=count)


def _save_destination(run: FlowRun) -> bool:
    """Save early what the flow writes to: a driver may be killed in its first update. Returns whether that is done."""
    state = run.checkpoint.read_state()
    if state is None:
        return False
    if state.sink_id is None and (sink := run.destination_id()) is not None:
        state = run.checkpoint.update_state(
            of_epoch=state.epoch, sink_id=sink, table=_address(run.delta_table)
        )
    return state.sink_id is not None


def _await(
    context: UpdateContext,
    started: StartedStream,
    ended: threading.Event,
    folder: Place,
    meanwhile: Callable[[], None],
    is_idle: Callable[[], bool],
    finish: Finish,
) -> None:
    query: StreamingQuery = started.query
    before = last_committed_batch(folder)
    try:
        # Half seconds work; the annotation knows whole ones only.
        while not query.awaitTermination(0.5):  # type: ignore[arg-type]
            meanwhile()
            _stop_without_lease(context, query)
            # However short the time is, a query that has started writes one batch, if there is one.
            is_over = context.time_is_up and last_committed_batch(folder) != before
            if context.stop_requested.is_set() or is_over:
                if not is_idle():
                    finish(query, folder, stop_seconds() if context.stop_requested.is_set() else None)
                query.stop()
                break
    except Exception as error:
        query.stop()  # what is wrong may have been seen beside it
        failed = started.writer.error if started.writer is not None else None
        # Without its lease the batch in flight was broken off: what it says of that is no cause.
        if failed is not None and not isinstance(error, LeaseLost):
            raise failed from None
        raise
    finally:
        ended.wait(LAST_PROGRESS.total_seconds())


def stop_seconds() -> float:
    """How long a stop waits for the batch in flight: HEADWATER_STOP_SECONDS."""
    return float(os.environ.get("HEADWATER_STOP_SECONDS", STOP_SECONDS))


def wait_for_batch(query: StreamingQuery, folder: Place, seconds: float | None) -> None:
    """Wait until the batch in flight is done and its progress reported, for ``seconds`` at most (None: without limit).

    One that takes longer is abandoned and repeated by the next update: no row is lost or doubled. What the query starts
    after it, before it is stopped, is abandoned, too.
    """
    in_flight = last_planned_batch(folder)
    ends = None if seconds is None else time.monotonic() + seconds
    committed_at: float | None = None
    while in_flight is not None and query.isActive:
        now = time.monotonic()
        if last_committed_batch(folder) == in_flight:
            # Its progress is reported shortly after its commit, and before the next plan, or the query's own end.
            committed_at = committed_at or now
        if (
            last_planned_batch(folder) != in_flight
            or (ends and now >= ends)
            or (committed_at and now > committed_at + _RECORDED_SECONDS)
        ):
            return
        time.sleep(_LOOK_SECONDS if isinstance(folder, Path) else _LOOK_SECONDS_ON_A_STORE)


def _stop_without_lease(context: UpdateContext, query: StreamingQuery) -> None:
    """A batch in flight may still be committed: Delta then skips the one of the new lease holder, by its number."""
    try:
        context.check_lease()
    except LeaseLost:
        query.stop()
        raise
