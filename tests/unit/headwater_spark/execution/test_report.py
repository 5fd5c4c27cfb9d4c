"""The report of an update is for logs that many read."""

from __future__ import annotations

from headwater.errors import SourceFileFailed
from headwater.event_log.details import FlowStatus, UpdateState
from headwater_spark.execution.outcome import FlowOutcome
from headwater_spark.execution.report import run_report
from headwater_spark.execution.update import UpdateResult


def test_a_report_quotes_no_secret():
    """Neither the line about the update nor the error of the flow has the value of an option."""
    error = SourceFileFailed("The function of 'a' raised ValueError: password='Hunter2Canary'")
    outcome = FlowOutcome("a", "a", FlowStatus.FAILED, error=error)
    report = run_report(UpdateResult("u", UpdateState.FAILED, [outcome], 1.0))
    assert "[redacted]" in report.message
    assert "Hunter2" not in report.to_json()
