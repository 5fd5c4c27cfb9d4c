"""One flow of an update, from QUEUED to its terminal record; no error leaves it but as part of the outcome."""

from __future__ import annotations

import time
from typing import Any

from headwater.definitions.dataset import Dataset, DatasetKind
from headwater.definitions.flow import Flow
from headwater.event_log.details import FlowStatus
from headwater.graph.manifest import FlowEntry
from headwater.metrics.backlog import Backlog
from headwater.metrics.lag import FlowLag, flow_lag
from headwater_spark.execution.failures import flow_error
from headwater_spark.execution.once_flow import run_once
from headwater_spark.execution.outcome import FlowOutcome
from headwater_spark.execution.schema_restart import run_evolving
from headwater_spark.execution.snapshot_flow import run_snapshots
from headwater_spark.execution.update_context import UpdateContext
from headwater_spark.execution.view_refresh import refresh_view
from headwater_spark.sources.reachability import check_brokers


def run_flow(
    context: UpdateContext, dataset: Dataset, flow: Flow, outcome: FlowOutcome, *, force: bool
) -> None:
    """Run a flow and fill in its outcome. ``force``: recompute a materialized view whatever its sources say."""
    started = time.monotonic()
    context.flow_event(outcome, FlowStatus.STARTING, f"{flow.name} starts.")
    try:
        context.check_lease()
        check_brokers(_entry(context, flow.name).sources)
        if context.pipeline.evaluation.kind_of(dataset) is DatasetKind.MATERIALIZED_VIEW:
            refresh_view(context, dataset, flow, outcome, force=force)
        elif flow.snapshots is not None:
            run_snapshots(context, dataset, flow, outcome)
        elif flow.once:
            run_once(context, dataset, flow, outcome)
        else:
            run_evolving(context, dataset, flow, outcome)
    except Exception as error:
        if context.stop_requested.is_set():
            outcome.status = FlowStatus.STOPPED
        else:
            outcome.status = FlowStatus.FAILED
            outcome.error = flow_error(flow, error, context.pipeline.evaluation.labels)
    outcome.seconds += time.monotonic() - started


def record_end(context: UpdateContext, outcome: FlowOutcome) -> None:
    """Write the terminal record of a flow: status, table version, what is left at its sources.

    Between two rounds of a long update a flow that is done is IDLE; its terminal record comes at the update's end.
    """
    details: dict[str, Any] = {"version": outcome.version}
    status = outcome.status
    if status is FlowStatus.COMPLETED:
        details |= outcome.data_quality
        outcome.data_quality = {}
        entry = _entry(context, outcome.flow)
        if entry.streaming:
            lag = _lag_left(context, entry)
            outcome.backlog_records = lag.backlog.records
            details["metrics"] = _backlog_metrics(lag)
        message = f"{outcome.flow} is done: {outcome.output_rows} rows written in {outcome.batches} batches."
        status = FlowStatus.IDLE if context.more_rounds else status
    elif outcome.error is not None:
        message = outcome.error.what
        if status is FlowStatus.FAILED:
            details["will_retry"] = outcome.error.transient and context.attempts_left
    else:
        message = f"{outcome.flow} was stopped; it goes on from where it stood."
    context.say(f"{status:<9}  {message.partition(chr(10))[0]}  ({outcome.seconds:.1f} s)")
    context.flow_event(outcome, status, message, **details)


def _lag_left(context: UpdateContext, entry: FlowEntry) -> FlowLag:
    """What is left at the sources. The rows are committed: that it can't be measured is for the record, and fails nothing."""
    try:
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
    found = {
        "backlog_records": backlog.records,
        "backlog_bytes": backlog.bytes,
        "backlog_files": backlog.files,
        "backlog_seconds": backlog.seconds,
        "backlog_unknown": backlog.unknown,
    }
    return {name: value for name, value in found.items() if value is not None}


def _entry(context: UpdateContext, flow: str) -> FlowEntry:
    return context.pipeline.manifest.flow(flow)
