"""A continuous update: every flow on a thread of its own, until a stop, a new definition, or the last flow has failed.

Streams are long queries with a trigger interval; views and snapshots are refreshed on theirs. What a flow does is what it does
in any update: ``run_flow``.

Decision 0172.
Decision 0174.
Decision 0188.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import timedelta

from headwater.errors import HeadwaterError
from headwater.event_log.details import FlowStatus, operation_progress
from headwater.event_log.retention import keep_event_log
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.update_plan import RefreshStage, UpdatePlan
from headwater.updates.definition_watch import DefinitionWatch
from headwater_spark.delta_writes.tables import create_table
from headwater_spark.execution.continuous_run import ContinuousRun, flow_intervals
from headwater_spark.execution.flow_lifecycle import record_end, run_flow
from headwater_spark.execution.flow_run import FlowRun
from headwater_spark.execution.outcome import FlowOutcome
from headwater_spark.execution.schedule import FAILURES, has_written, leave_out, prepare_table
from headwater_spark.execution.update_context import UpdateContext
from headwater_spark.execution.update_records import record_stop
from headwater_spark.execution.view_sources import fingerprints

LOOK_SECONDS = 2.0
# Between two looks at the definition lies so many times what one takes.
LOOK_SHARE = 20
HEARTBEAT = timedelta(minutes=1)
UPKEEP = timedelta(hours=1)
# A plan in the JVM lives as long as a Python object that refers to it. Those in cycles wait for Python's collector, which counts
# Python objects and knows nothing of the JVM's heap: it would come after minutes, and plans fill a heap of a gigabyte before.
COLLECTION = timedelta(seconds=30)
# An update is begun again after this time: its records, and what it keeps of each batch, have an end.
LONGEST = timedelta(days=1)


def run_continuously(
    context: UpdateContext, plan: UpdatePlan, outcomes: dict[str, FlowOutcome], watch: DefinitionWatch
) -> str:
    """Run all flows side by side until they are stopped; returns why the update is to be begun again, empty for a stop.

    Args:
        outcomes: by flow; they are filled in.
        watch: says whether the definition has changed on disk.
    """
    run = context.continuous = ContinuousRun(flow_intervals(context.pipeline, plan))
    context.more_rounds = True  # a view that is done waits for its next refresh
    with ThreadPoolExecutor(len(outcomes) or 1, thread_name_prefix="flow") as pool:
        futures = [
            pool.submit(_keep, context, run, plan, stage, outcomes[flow])
            for stage in plan.refreshes
            for flow in stage.flows
        ]
        try:
            again = _supervise(context, run, futures, watch)
        finally:
            context.stop_requested.set()
            wait(futures)
            context.more_rounds = False
            for outcome in outcomes.values():
                if outcome.status is FlowStatus.COMPLETED:  # a view that waits
                    outcome.status = FlowStatus.STOPPED
                    record_end(context, outcome)
    # Somebody may want it to stop while it ends for another reason.
    return "" if context.stop_requested.signalled else again


def _supervise(
    context: UpdateContext, shared: ContinuousRun, futures: list[Future[None]], watch: DefinitionWatch
) -> str:
    project = context.pipeline.project
    beats, upkeep, collection, next_look = _every(HEARTBEAT), _every(UPKEEP), _every(COLLECTION), 0.0
    while True:
        done, waiting = wait(futures, timeout=0)
        for future in done:
            future.result()  # raises what is no flow's failure
        if not waiting or context.stop_requested.wait(LOOK_SECONDS):
            record_stop(context)
            return ""
        if next(beats):
            _beat(context, shared)
            context.register_tables()
        _keep_tidy(project, collection, upkeep)
        if time.monotonic() - shared.started >= LONGEST.total_seconds():
            return "it has run for a day"
        if time.monotonic() < next_look:
            continue
        began = time.monotonic()
        changed, trouble = watch.look()
        # A folder with many files in it takes long to look through.
        next_look = time.monotonic() + LOOK_SHARE * (time.monotonic() - began)
        if trouble:
            context.say(f"DEFINITION The one on disk can't be run, the one before goes on: {trouble}")
        if changed:
            return "its definition has changed"


def _keep_tidy(project: PipelineProject, collection: Iterator[bool], upkeep: Iterator[bool]) -> None:
    if next(collection):
        gc.collect()
    if next(upkeep):
        keep_event_log(project.state_folder, project.spec.event_log.retention_days)


def _every(interval: timedelta) -> Iterator[bool]:
    last = time.monotonic()
    while True:
        is_due = time.monotonic() - last >= interval.total_seconds()
        last = time.monotonic() if is_due else last
        yield is_due


def _beat(context: UpdateContext, run: ContinuousRun) -> None:
    """A sign of life, for those who watch from outside."""
    again = ", ".join(f"{flow} (attempt {attempt})" for flow, attempt in sorted(run.restarting.items()))
    uptime = time.monotonic() - run.started
    message = f"The update has run for {uptime:.0f} s; {f'restarting: {again}' if again else 'no flow is restarting'}."
    context.events.emit(
        "operation_progress",
        message,
        details=operation_progress(
            "CONTINUOUS", "RUNNING", None, uptime_seconds=round(uptime), restarting=dict(run.restarting)
        ),
        maturity="EVOLVING",
    )


def _keep(
    context: UpdateContext, run: ContinuousRun, plan: UpdatePlan, stage: RefreshStage, outcome: FlowOutcome
) -> None:
    """Keep one flow running, to its terminal record."""
    upstream = {
        name: other.dataset
        for other in plan.refreshes
        if other.dataset in stage.after
        for name in other.flows
    }
    if has_written(context, stage):
        run.readable(outcome.flow)
    failed = {upstream[name] for name in run.wait_for(upstream, context.stop_requested)}
    if not failed:
        beside = stage.before(outcome.flow)
        failed = set(run.wait_for(beside, context.stop_requested, in_this_update=True))
    if failed or context.stop_requested.is_set():
        leave_out(context, outcome, sorted(failed))
    else:
        _run(context, run, stage, outcome)
    if outcome.status in FAILURES:
        run.gave_up(outcome.flow)


def _run(context: UpdateContext, run: ContinuousRun, stage: RefreshStage, outcome: FlowOutcome) -> None:
    dataset, flow = context.pipeline.dataset(stage.dataset), context.pipeline.flow(outcome.flow)
    flow_run = FlowRun(context, dataset, flow, outcome)

    def ready() -> None:
        with run.table_lock(stage.dataset):
            prepare_table(context, stage)
            _create_table(flow_run)

    if flow_run.is_stream or flow.once:
        run_flow(flow_run, force=False, prepare=ready)
        record_end(context, outcome)
        if flow.once:
            (run.looked if outcome.status is FlowStatus.COMPLETED else run.readable)(flow.name)
    else:
        _refresh(flow_run, run, ready)


def _refresh(flow_run: FlowRun, run: ContinuousRun, ready: Callable[[], None]) -> None:
    """Refresh a view, or follow a snapshot, when its sources have moved, until a stop or until it has failed for good."""
    context, outcome = flow_run.context, flow_run.outcome
    interval, before = run.intervals[flow_run.name], None
    while not context.stop_requested.is_set():
        now = _position(flow_run)
        if before is None or now != before:
            run_flow(flow_run, force=False, prepare=ready)
            record_end(context, outcome)
            if outcome.status is not FlowStatus.COMPLETED:
                return
            before = now
            run.is_running(flow_run.name)
        context.stop_requested.wait(interval)
    if outcome.status is FlowStatus.QUEUED:
        leave_out(context, outcome, [])


def _position(run: FlowRun) -> object:
    """What the sources are at; each time another value where that can't be known."""
    try:
        position = None if run.entry.time_dependent else fingerprints(run.context, run.entry)
    except (HeadwaterError, OSError):
        position = None  # its own refresh says why
    return object() if position is None else position


def _create_table(run: FlowRun) -> None:
    """Create a stream's table before its first row: its readers need it."""
    table, dataset = run.delta_table, run.dataset
    if run.is_stream and table is not None and dataset.sink is None and not run.checkpoint.has_written():
        create_table(run.context.spark, dataset, table, run.context.pipeline.evaluation.table_schema(dataset))
