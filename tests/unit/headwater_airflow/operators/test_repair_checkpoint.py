"""A repair changes nothing unless somebody says so."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from headwater.doctor.repair_plan import RepairNotPossible
from headwater.errors import UpdateInProgress
from headwater_airflow.operators import repair_checkpoint as module
from headwater_airflow.operators.repair_checkpoint import RepairCheckpointOperator

FORM = {"flow": "bronze", "action": "mend"}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the task; ``operations``: what was carried out."""
    operations: list[Any] = []
    plan = SimpleNamespace(as_dict=lambda: {"action": "mend"})

    def operate(*given: Any) -> Any:
        operations.append(given)
        return SimpleNamespace(snapshot=None, done="done", as_dict=lambda: {"done": "done"})

    def planned(case: Any, *_: Any) -> Any:
        if isinstance(case, Exception):
            raise case
        return plan

    monkeypatch.setattr(module, "refuse_unknown_conf", lambda *_: None)
    monkeypatch.setattr(module, "pipeline_project", lambda _: "project")
    monkeypatch.setattr(module, "plan_repair", planned)
    monkeypatch.setattr(module, "operate", operate)

    def once(case: Any = "case", *, only_plan: bool = False, **params: Any) -> Any:
        monkeypatch.setattr(module, "named_case", lambda *_: case)
        task = RepairCheckpointOperator(task_id="repair", pipeline="shop", only_plan=only_plan)
        return task.execute({"params": {**FORM, **params}})

    once.operations = operations  # type: ignore[attr-defined]
    return once


@pytest.mark.parametrize(
    "dry_run", [{}, {"dry_run": True}, {"dry_run": None}, {"dry_run": 0}, {"dry_run": "false"}]
)
def test_whatever_is_not_a_plain_no_is_a_dry_run(run: Any, dry_run: dict[str, Any]):
    """The plan is shown by the task before; nothing is carried out."""
    with pytest.raises(AirflowSkipException):
        run(**dry_run)
    assert run(only_plan=True, **dry_run) == {"state": "PLANNED", "plan": {"action": "mend"}}
    assert run.operations == []


def test_a_repair_that_is_wanted(run: Any):
    """It is carried out as it was planned, by the task that is there for it."""
    assert run(only_plan=True, dry_run=False)["state"] == "PLANNED"
    assert run.operations == []
    assert run(dry_run=False) == {"state": "COMPLETED", "repair": {"done": "done"}}
    assert [case for case, _ in run.operations] == ["case"]


@pytest.mark.parametrize(
    ("error", "may_pass"),
    [(UpdateInProgress("An update runs."), True), (RepairNotPossible("No copy."), False)],
)
def test_what_is_tried_again(run: Any, error: Exception, may_pass: bool):
    """An update that runs ends; what a repair lacks does not come by itself."""
    with pytest.raises(AirflowException) as raised:
        run(error, dry_run=False)
    assert isinstance(raised.value, AirflowFailException) is not may_pass
