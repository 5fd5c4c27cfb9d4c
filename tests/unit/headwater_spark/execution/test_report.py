"""The report of an update is for logs that many read."""

from __future__ import annotations

import pytest

from headwater.errors import CheckpointUnreadable, HeadwaterError, LeaseLost, SourceFileFailed
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


@pytest.mark.parametrize(
    ("errors", "refused"),
    [
        ([LeaseLost("a")], True),
        ([LeaseLost("a"), CheckpointUnreadable("b")], True),
        ([LeaseLost("a"), SourceFileFailed("b")], False),
        ([SourceFileFailed("b")], False),
        ([], False),
    ],
)
def test_an_update_that_was_only_refused(errors: list[HeadwaterError], refused: bool):
    """Where each flow that failed was kept from starting: flows that were done, or left out for others, do not count."""
    outcomes = [FlowOutcome(str(n), "t", FlowStatus.FAILED, error=error) for n, error in enumerate(errors)]
    outcomes += [FlowOutcome("done", "t", FlowStatus.COMPLETED), FlowOutcome("left", "t", FlowStatus.SKIPPED)]
    assert run_report(UpdateResult("u", UpdateState.FAILED, outcomes, 1.0)).refused is refused


def test_the_error_of_an_update():
    """That of the first flow that failed by itself."""
    left = FlowOutcome("left", "t", FlowStatus.SKIPPED, error=SourceFileFailed("not this"))
    failed = [FlowOutcome(name, "t", FlowStatus.FAILED, error=SourceFileFailed(name)) for name in "ab"]
    assert UpdateResult("u", UpdateState.FAILED, [left, *failed], 1.0).error is failed[0].error
    assert UpdateResult("u", UpdateState.FAILED, [left], 1.0).error is None
