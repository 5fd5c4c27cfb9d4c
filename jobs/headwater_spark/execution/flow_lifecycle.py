"""One flow of an update, from QUEUED to its terminal record; its errors become part of the outcome."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from headwater.errors import FlowFailed, FlowInterrupted, HeadwaterError, LeaseLost
from headwater.event_log.details import FlowStatus
from headwater.graph.manifest import FlowEntry
from headwater.metrics.backlog import Backlog
from headwater.metrics.lag import FlowLag, flow_lag
from headwater.storage.listing import looked_over
from headwater_spark.execution.failures import cause_messages, flow_error
from headwater_spark.execution.flow_run import FlowRun
from headwater_spark.execution.once_flow import run_once
from headwater_spark.execution.outcome import FlowOutcome
from headwater_spark.execution.remedies import remedies_for
from headwater_spark.execution.restarts import Start, run_with_restarts
from headwater_spark.execution.snapshot_flow import run_snapshots
from headwater_spark.execution.start_checks import refusal_of_files
from headwater_spark.execution.streaming_write import run_stream
from headwater_spark.execution.update_context import UpdateContext
from headwater_spark.execution.view_refresh import refresh_view
from headwater_spark.sources.reachability import check_brokers


def run_flow(run: FlowRun, *, force: bool, prepare: Callable[[], None] = lambda: None) -> None:
    """Run a flow, retry where that helps, and fill in its outcome.

    Args:
        force: recompute a materialized view even if its sources have not changed.
        prepare: called before each start.
    """
    stop = run.context.stop_requested
    begin = partial(_begin, run, force=force, prepare=prepare)
    failure = run_with_restarts(begin, remedies_for(run), stop)
    if failure is not None:
        run.outcome.status = FlowStatus.STOPPED if stop.is_set() else FlowStatus.FAILED
        if not stop.is_set():
            run.outcome.error = _error(run, failure)


def _error(run: FlowRun, failure: BaseException) -> HeadwaterError:
    """The error of a flow; where another driver has the lease, that is why a commit met another one, and it is said instead.

    Where it names a file of the table that is gone, it is the finding that says so.
    """
    labels = run.context.pipeline.evaluation.labels
    error = flow_error(run.flow, failure, labels)
    if type(error) in (FlowInterrupted, FlowFailed):
        try:
            run.context.check_lease()
        except LeaseLost as lost:
            return flow_error(run.flow, lost, labels)
    return refusal_of_files(run, error, cause_messages(failure)) if type(error) is FlowFailed else error


def _begin(run: FlowRun, start: Start, *, force: bool, prepare: Callable[[], None]) -> None:
    context, started = run.context, time.monotonic()
    try:
        if start.reason is None:
            attempt = start.attempt if context.continuous is not None else None
            run.record(FlowStatus.STARTING, f"{run.name} starts.", attempt=attempt)
            context.check_lease()
            prepare()
            check_brokers(run.entry.sources)
            context.pipeline.evaluation.cloud.careful.discard(run.name)
        else:
            context.say(start.reason, flow=run.name)
            run.record(FlowStatus.STARTING, start.reason)
        if run.is_view:
            refresh_view(run, force=force)
        elif run.flow.snapshots is not None:
            run_snapshots(run)
        elif run.flow.once:
            run_once(run)
        else:
            run_stream(run, start.left_out)
    finally:
        run.outcome.seconds += time.monotonic() - started


def record_end(context: UpdateContext, outcome: FlowOutcome) -> None:
    """Write the terminal record of a flow: status, table version, lag.

    Between two rounds of a long update a flow that is done is IDLE; its terminal record is written at the update's end.
    """
    details: dict[str, Any] = {"version": outcome.version}
    status = outcome.status
    if status is FlowStatus.COMPLETED:
        details |= outcome.data_quality
        outcome.data_quality = {}
        entry = context.pipeline.manifest.flow(outcome.flow)
        if entry.streaming:
            lag = _measured_lag(context, entry)
            outcome.backlog_records = lag.backlog.records
            details["metrics"] = _backlog_metrics(lag)
        message = f"{outcome.flow} is done: {outcome.output_rows} rows written in {outcome.batches} batches."
        status = FlowStatus.IDLE if context.more_rounds else status
    elif outcome.error is not None:
        message = outcome.error.what
        if status is FlowStatus.FAILED:
            details["will_retry"] = outcome.error.transient and context.attempts_left
    else:
        message = f"{outcome.flow} was stopped; it continues from its position."
    context.say(f"{status:<9}  {message.partition(chr(10))[0]}  ({outcome.seconds:.1f} s)", flow=outcome.flow)
    context.flow_event(outcome, status, message, **details)


def _measured_lag(context: UpdateContext, entry: FlowEntry) -> FlowLag:
    """The flow's lag. Its rows are committed: a lag that can't be measured is recorded as such, and fails nothing."""
    try:
        with looked_over(context.checkpoint(entry.target, entry.name).folder):
            return flow_lag(context.pipeline.project, entry)
    except Exception as error:
        unknown = Backlog.because(f"lag could not be measured: {type(error).__name__}: {error}")
        return FlowLag(entry.name, entry.target, entry.streaming, unknown, ())


def _backlog_metrics(lag: FlowLag) -> dict[str, Any]:
    return {
        **_backlog(lag.backlog),
        "source_metrics": [{"source_name": part.name, **_backlog(part.backlog)} for part in lag.sources],
    }


def _backlog(backlog: Backlog) -> dict[str, Any]:
    metrics = {
        "backlog_records": backlog.records,
        "backlog_bytes": backlog.bytes,
        "backlog_files": backlog.files,
        "backlog_seconds": backlog.seconds,
        "backlog_unknown": backlog.unknown,
    }
    return {name: value for name, value in metrics.items() if value is not None}
