"""What an update came to, as an exit code and as JSON."""

from __future__ import annotations

import pytest

from headwater.contract.driver_report import ReportedError
from headwater.contract.report import FlowReport, RunReport


@pytest.mark.parametrize(
    ("state", "refused", "code"),
    [("COMPLETED", False, 0), ("FAILED", False, 1), ("CANCELED", False, 1), ("FAILED", True, 3)],
)
def test_exit_codes(state: str, refused: bool, code: int):
    """Only an update that failed by refusals alone ends with their code."""
    assert RunReport("u", state, (), 1.0, refused=refused).exit_code == code


def test_json_is_the_contract():
    """The keys are those that programs were promised."""
    report = RunReport(
        "u",
        "FAILED",
        (FlowReport("f", "d", "FAILED", error=ReportedError(condition="X", message="x")),),
        1.23456,
        "why",
        refused=True,
    )
    assert {"update_id", "state", "flows"} <= set(report.as_dict())
    assert set(report.as_dict()["flows"][0]) >= {
        "flow", "dataset", "state", "batches", "input_rows", "output_rows", "dropped_rows", "quarantined_rows", "error",
    }  # fmt: skip
    assert report.as_dict()["seconds"] == 1.235
