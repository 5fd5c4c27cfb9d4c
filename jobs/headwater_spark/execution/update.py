"""An update, from sources on disk to tables: session, graph, plan, lease, resets, flows, report.

Decision 0001.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from pyspark.sql import SparkSession

from headwater.checkpoints.layout import flow_checkpoint
from headwater.checkpoints.table_move import refuse_old_names
from headwater.definitions.trigger import Continuous, ProcessingTime
from headwater.doctor.begun_actions import record_begun
from headwater.errors import HeadwaterError, UpdateInProgress
from headwater.event_log.conditions import EventLogNotWritten
from headwater.event_log.dead_updates import close_dead_updates, close_update
from headwater.event_log.details import FlowStatus, UpdateState, update_progress
from headwater.event_log.event import Event
from headwater.event_log.hooks import EventHooks
from headwater.event_log.live_driver import published_driver
from headwater.event_log.reader import flow_results, last_batches
from headwater.event_log.retention import keep_event_log
from headwater.event_log.writer import CONTINUOUS_FLUSH_SECONDS, FLUSH_SECONDS, EventLogWriter
from headwater.graph.manifest import Manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.stored_manifest import replace_manifest, seen_manifest, with_dropped
from headwater.graph.table_owners import refuse_foreign_tables
from headwater.graph.table_places import refuse_nested_on_disk
from headwater.graph.update_plan import Selection, UpdatePlan, plan_update
from headwater.leases.lease import Lease
from headwater.leases.stop_request import stop_requests
from headwater.leases.turn import wait_for_turn
from headwater.metastore.registration import refuse_foreign_entries, refuse_name_clashes
from headwater.telemetry.otlp import metrics_export
from headwater.updates.continuous_mode import (
    is_continuous,
    refuse_once_flows,
    refuse_selection,
    spark_settings,
)
from headwater.updates.failed_tables import with_failed
from headwater_spark.execution.changed_definition import definition_watch
from headwater_spark.execution.continuous import run_continuously
from headwater_spark.execution.flow_lifecycle import record_end
from headwater_spark.execution.outcome import FlowOutcome
from headwater_spark.execution.progress import ProgressListener
from headwater_spark.execution.resets import run_resets
from headwater_spark.execution.rounds import more_rounds
from headwater_spark.execution.schedule import run_refreshes
from headwater_spark.execution.update_context import StopRequest, UpdateContext
from headwater_spark.execution.update_records import announce, record_stop
from headwater_spark.linting.linter import LintReport, lint
from headwater_spark.resolution.graph_resolution import resolved_pipeline
from headwater_spark.resolution.incremental_views import with_incremental_views
from headwater_spark.session import end_session, start_session

# As on Lakeflow: three tries.
FLOW_RETRIES = 2
# How long a scheduled run waits for the end of another update.
_WAIT = timedelta(minutes=10)


@dataclass(frozen=True)
class UpdateRequest:
    """The caller's request: which datasets, the request's id and time, and which attempt this is.

    ``announced_together``: whether its tables are announced when the whole update has ended well.
    """

    selection: Selection
    request_id: str | None = None
    attempt: int = 1
    max_attempts: int = 1
    requested_at: datetime | None = None
    announced_together: bool = False


@dataclass(frozen=True)
class UpdateResult:
    """The result of an update. ``seconds``: wall time after the session was started.

    ``again``: why a continuous update is to be begun again, empty where it is not.
    """

    update_id: str
    state: UpdateState
    outcomes: Sequence[FlowOutcome]
    seconds: float
    again: str = ""

    @property
    def error(self) -> HeadwaterError | None:
        """The first error of a flow that failed by itself."""
        return next((o.error for o in self.outcomes if o.status is FlowStatus.FAILED), None)


def resolve_only(project: PipelineProject) -> Manifest:
    """Resolve the graph and give its manifest; writes nothing. Raises InvalidPipeline."""
    spark = start_session(project.pipeline_id, project.spark_conf)
    with resolved_pipeline(project, spark) as pipeline:
        refuse_name_clashes(project, pipeline.manifest)
        return pipeline.manifest


def lint_only(project: PipelineProject) -> tuple[Manifest, LintReport]:
    """Resolve the graph and look for what will go wrong; writes nothing. Raises InvalidPipeline."""
    spark = start_session(project.pipeline_id, project.spark_conf)
    with resolved_pipeline(project, spark) as pipeline:
        refuse_name_clashes(project, pipeline.manifest)
        return with_incremental_views(pipeline), lint(pipeline)


def run_update(project: PipelineProject, request: UpdateRequest) -> UpdateResult:
    """Run an update to its end.

    Raises:
        InvalidPipeline: the definition can't be run; nothing was written.
        RefusedForSafety: another update is running, or the selection would lose data.
    """
    update_id = str(uuid.uuid4())
    wait = _wait_without_executors(project, request, update_id)
    ends = time.monotonic() + wait.total_seconds()
    try:
        return _update(project, request, update_id, partial(_leased, project, update_id, wait))
    except _SecondInTurn:
        end_session()
    # The definition was valid a moment ago, so nothing speaks against a lease before the session.
    with project.lease(update_id, wait=timedelta(seconds=max(0.0, ends - time.monotonic()))) as lease:
        return _update(project, request, update_id, lambda _: nullcontext(lease))


class _SecondInTurn(Exception):
    """Another update was first, and this one has executors that it may lack; nothing was written."""


def _update(
    project: PipelineProject, request: UpdateRequest, update_id: str, leased: Callable[[SparkSession], AbstractContextManager[Lease]]
) -> UpdateResult:  # fmt: skip
    """The update. ``leased``: gives its lease, or takes it."""
    spark = start_session(project.pipeline_id, spark_settings(project))
    with ExitStack() as stack:
        stop = stack.enter_context(_stop_on_signals())
        pipeline = stack.enter_context(resolved_pipeline(project, spark))
        request = replace(request, selection=with_failed(project, pipeline.manifest, request.selection))
        # An impossible selection is refused before anything is written, the lease included.
        plan_update(pipeline.manifest, request.selection)
        refuse_selection(project, request.selection)
        refuse_name_clashes(project, pipeline.manifest)
        refuse_once_flows(project, pipeline.manifest, lambda: _completed_once(project, pipeline.manifest))
        lease = stack.enter_context(leased(spark))
        stack.enter_context(stop_requests(project.state_folder, (update_id, request.request_id), stop.signal))
        record_begun(project)
        recorded = _recorded_batches(project)
        refuse_old_names(project.state_folder, {e.name: e.defined_at for e in pipeline.manifest.outputs})
        seen, before = seen_manifest(project.state_folder)
        refuse_foreign_tables(project, pipeline.manifest, before=before)
        refuse_nested_on_disk(project, pipeline.manifest)
        refuse_foreign_entries(project, pipeline.manifest)
        ui = spark.sparkContext.uiWebUrl
        stack.enter_context(published_driver(project.state_folder, request.request_id, update_id, ui))
        completed = _completed_before(project, request, pipeline.manifest)
        plan = plan_update(pipeline.manifest, request.selection, completed)
        metrics = stack.enter_context(metrics_export())
        endings: list[Event] = []
        close_dead_updates(
            project.state_folder, project.pipeline_id, project.spec.name, request.request_id, endings.extend
        )
        replace_manifest(seen, with_dropped(pipeline.manifest, before, project), lease.check)
        stack.callback(keep_event_log, project.state_folder, project.spec.event_log.retention_days)
        listener = ProgressListener()
        pipeline.session.streams.addListener(listener)
        stack.callback(pipeline.session.streams.removeListener, listener)
        writer = EventLogWriter(
            project.state_folder, project.pipeline_id, project.spec.name, update_id, request.request_id,
            flush_seconds=CONTINUOUS_FLUSH_SECONDS if is_continuous(project) else FLUSH_SECONDS,
        )  # fmt: skip
        events = stack.enter_context(writer)
        metrics.offer(endings)
        events.subscribe(metrics.offer)
        context = UpdateContext(
            pipeline, spark, events, listener, update_id, recorded, lease,
            attempts_left=request.attempt < request.max_attempts, stop_requested=stop,
            # A person is told of a failure at once; a scheduled run has time to retry.
            flow_retries=FLOW_RETRIES if request.request_id is not None else 0,
        )  # fmt: skip
        return _run_and_record(context, plan, request, endings)


def _recorded_batches(project: PipelineProject) -> Future[dict[tuple[str, int], int]]:
    """Read in the background which batches the event log has.

    Only with the lease: its previous holder may still be recording.
    """
    reading = ThreadPoolExecutor(1, thread_name_prefix="event-log-reader")
    recorded = reading.submit(last_batches, project.state_folder)
    reading.shutdown(wait=False)
    return recorded


def _run_and_record(
    context: UpdateContext, plan: UpdatePlan, request: UpdateRequest, endings: Sequence[Event]
) -> UpdateResult:
    """Run the update with its hooks; whatever ends it, each flow and the update get a terminal record.

    ``endings``: what was written for killed updates; the hooks hear of them first.
    """
    hooks = EventHooks(context.pipeline.registry.hooks(), context.events)
    hooks.start(endings)
    try:
        return _run(context, plan, request)
    except BaseException as error:
        context.events.flush()
        flows = flow_results(context.pipeline.project.state_folder, update_id=context.update_id)
        close_update(context.events, flows, error=error)
        raise
    finally:
        with suppress(EventLogNotWritten):  # closing the log reports it
            context.events.flush()
        hooks.drain()


def _run(context: UpdateContext, plan: UpdatePlan, request: UpdateRequest) -> UpdateResult:
    started = time.monotonic()
    announce(
        context,
        plan,
        request.selection,
        request.attempt,
        request.requested_at,
        announced_together=request.announced_together,
    )
    outcomes = {flow: FlowOutcome(flow, stage.dataset) for stage in plan.refreshes for flow in stage.flows}
    context.pipeline.evaluation.live = True
    if plan.resets:
        context.events.emit(
            "update_progress",
            "Tables and checkpoints are reset.",
            details=update_progress(UpdateState.RESETTING),
        )
    run_resets(context, plan)
    context.events.emit(
        "update_progress",
        "Each table is prepared before its flows start.",
        details=update_progress(UpdateState.SETTING_UP_TABLES),
    )
    context.events.emit("update_progress", "The update runs.", details=update_progress(UpdateState.RUNNING))
    trigger = context.pipeline.project.spec.trigger
    if isinstance(trigger, Continuous):
        again = run_continuously(context, plan, outcomes, definition_watch(context.pipeline))
        return _ended(context, outcomes, started, again)
    context.more_rounds = isinstance(trigger, ProcessingTime)
    if isinstance(trigger, ProcessingTime):
        context.ends = started + trigger.run_for.total_seconds()
    run_refreshes(context, plan, outcomes)
    if isinstance(trigger, ProcessingTime):
        more_rounds(context, plan, outcomes, trigger, started)
        context.more_rounds = False
        for outcome in outcomes.values():
            if outcome.status is FlowStatus.COMPLETED:
                record_end(context, outcome)
    return _ended(context, outcomes, started)


def _ended(
    context: UpdateContext, outcomes: dict[str, FlowOutcome], started: float, again: str = ""
) -> UpdateResult:
    trigger = context.pipeline.project.spec.trigger
    failed = [o for o in outcomes.values() if o.status in (FlowStatus.FAILED, FlowStatus.SKIPPED)]
    cut_short = isinstance(trigger, ProcessingTime) and context.stop_requested.is_set()
    stopped = cut_short or any(o.status is FlowStatus.STOPPED for o in outcomes.values())
    state = UpdateState.FAILED if failed else UpdateState.CANCELED if stopped else UpdateState.COMPLETED
    result = UpdateResult(
        context.update_id, state, list(outcomes.values()), time.monotonic() - started, again
    )
    record_stop(context)
    context.register_tables()
    context.events.emit(
        "update_progress", "Every flow has ended.", details=update_progress(UpdateState.STOPPING)
    )
    context.events.emit(
        "update_progress",
        f"The update is {state.lower()}{f': {again}, and it begins again' if again else ''}.",
        level="ERROR" if failed else "INFO",
        details=update_progress(state),
        error=result.error,
    )
    return result


def _completed_before(project: PipelineProject, request: UpdateRequest, manifest: Manifest) -> list[str]:
    """Datasets that an earlier attempt of the same request completed: a retry does what is left."""
    if request.request_id is None or request.attempt <= 1 or is_continuous(project):
        return []
    completed = {
        result.flow for result in flow_results(project.state_folder, request_id=request.request_id)
        if result.state == FlowStatus.COMPLETED
    }  # fmt: skip
    return [
        entry.name for entry in manifest.outputs
        if (flows := manifest.flows_into(entry.name)) and all(flow.name in completed for flow in flows)
    ]  # fmt: skip


def _completed_once(project: PipelineProject, manifest: Manifest) -> set[str]:
    """The flows that run once and have."""
    completed = set()
    for flow in (flow for flow in manifest.flows if flow.once):
        state = flow_checkpoint(project.state_folder, flow.target, flow.name).read_state()
        if state is not None and state.completed:
            completed.add(flow.name)
    return completed


def _wait_without_executors(project: PipelineProject, request: UpdateRequest, update_id: str) -> timedelta:
    """Wait for the end of another update, which may lack the executors that a session has; gives what is left of the time.

    Raises:
        UpdateInProgress: it has not ended in time.
    """
    # A scheduled run waits: tasks of one pipeline may run at the same time, and a retry may meet the driver of the
    # previous attempt. A person is told at once.
    if request.request_id is None:
        return timedelta(0)
    # YARN ends a driver of its own that has no session after 100 seconds (spark.yarn.am.waitTime).
    if _is_run_by_yarn():
        return _WAIT
    left = wait_for_turn(project.state_folder, _WAIT)
    if not left:
        with project.lease(update_id):  # refused, with whose it is
            pass
    return left


@contextmanager
def _leased(
    project: PipelineProject, update_id: str, wait: timedelta, spark: SparkSession
) -> Iterator[Lease]:
    """The lease inside the block; raises _SecondInTurn where another update has it, and this one would wait with executors.

    A driver in a pod, and one that YARN runs, end with their session: these wait as they are.
    """
    gives_back = (
        bool(wait) and not _is_run_by_yarn() and str(spark.sparkContext.master).startswith(("spark:", "yarn"))
    )
    with ExitStack() as stack:
        try:
            lease = stack.enter_context(project.lease(update_id, wait=timedelta(0) if gives_back else wait))
        except UpdateInProgress:
            if gives_back:
                raise _SecondInTurn from None
            raise
        yield lease


def _is_run_by_yarn() -> bool:
    return "SPARK_YARN_STAGING_DIR" in os.environ


@contextmanager
def _stop_on_signals() -> Iterator[StopRequest]:
    """Turn SIGTERM and SIGINT into a request to stop, checked between batches, while the block runs."""
    stop = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    for number in before:
        signal.signal(number, lambda *_: stop.signal())
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
