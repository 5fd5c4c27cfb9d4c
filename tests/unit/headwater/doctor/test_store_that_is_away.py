"""A store that goes away while a flow is looked at: what is wrong is not known then, and nobody is told that nothing can be done."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headwater.checkpoints.conditions import CheckpointUnreadable
from headwater.commands import checkpoints
from headwater.doctor import diagnosis, repairs
from headwater.doctor.repair_plan import RepairNotPossible, RepairOptions
from headwater.preflight.damage import Damage, Repair
from headwater.storage.conditions import StoreUnreachable

AWAY = Damage(StoreUnreachable("The store does not answer."), repairs=(Repair.MEND,))
DAMAGED = Damage(CheckpointUnreadable("It can't be read."), repairs=(Repair.MEND,))


def case(*damages: Damage) -> Any:
    """A flow with these findings."""
    return SimpleNamespace(
        flow=SimpleNamespace(name="bronze", target="bronze"),
        project=SimpleNamespace(folder=SimpleNamespace(name="shop")),
        damages=damages,
    )


@pytest.mark.parametrize("damages", [[AWAY], [DAMAGED, AWAY]])
def test_a_repair_in_place_is_tried_again(damages: list[Damage]):
    """Whether there is something to repair is not known: that passes, and is no refusal."""
    with pytest.raises(StoreUnreachable):
        repairs._mend(case(*damages), RepairOptions())
    with pytest.raises(RepairNotPossible):
        repairs._mend(case(DAMAGED), RepairOptions())


@pytest.mark.parametrize(
    ("error", "possible"),
    [(StoreUnreachable("away"), None), (RepairNotPossible("no", remedy="another"), False)],
)
def test_a_remedy_that_can_not_be_planned_now(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception, possible: bool
):
    """It is not called impossible."""

    def planned(*_: object) -> None:
        raise error

    monkeypatch.setattr(diagnosis, "plan_repair", planned)
    (finding,) = diagnosis.diagnose(case(DAMAGED))
    (remedy,) = finding.as_dict()["remedies"]
    assert remedy["possible"] is possible
    checkpoints._explain(finding)
    assert ("not possible" in capsys.readouterr().out) is (possible is False)


@pytest.mark.parametrize(
    ("damages", "code"), [([], 0), ([AWAY], 1), ([AWAY, DAMAGED], 3), ([DAMAGED], 3), ([AWAY, AWAY], 1)]
)
def test_a_check_that_finds_nothing_else_may_be_run_again(damages: list[Damage], code: int):
    """The exit code is that of what passes, unless something else is wrong, too."""
    found = [diagnosis.Diagnosis("a", "a", damage, ()) for damage in damages]
    project: Any = SimpleNamespace(pipeline_id="shop")
    assert checkpoints._examine(project, 1, found, remedies=False, as_json=True) == code
