"""The report of an update and of each of its flows."""

from __future__ import annotations

from headwater.contract.driver_report import ReportedError
from headwater.contract.report import FlowReport, RunReport
from headwater.errors import RefusedForSafety
from headwater.event_log.details import FlowStatus
from headwater_spark.execution.outcome import FlowOutcome
from headwater_spark.execution.update import UpdateResult


def run_report(result: UpdateResult) -> RunReport:
    """The report of an update, for people and programs."""
    flows = tuple(_flow_report(outcome) for outcome in result.outcomes)
    message = ReportedError.of(result.error).message.partition("\n")[0] if result.error is not None else ""
    failed = [outcome.error for outcome in result.outcomes if outcome.status is FlowStatus.FAILED]
    refused = bool(failed) and all(isinstance(error, RefusedForSafety) for error in failed)
    return RunReport(result.update_id, str(result.state), flows, result.seconds, message, refused)


def _flow_report(outcome: FlowOutcome) -> FlowReport:
    return FlowReport(
        outcome.flow,
        outcome.dataset,
        str(outcome.status),
        outcome.input_rows,
        outcome.output_rows,
        outcome.dropped_rows,
        outcome.quarantined_rows,
        batches=outcome.batches,
        error=ReportedError.of(outcome.error) if outcome.error is not None else None,
    )
