"""What can be done about a finding: the command, and what it costs, or why it is not possible."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headwater.doctor import diagnosis as module
from headwater.errors import HeadwaterError
from headwater.preflight.damage import Repair
from headwater.storage.conditions import StoreUnreachable

CASE: Any = SimpleNamespace(
    project=SimpleNamespace(folder=SimpleNamespace(name="shop")), flow=SimpleNamespace(name="orders")
)


@pytest.mark.parametrize("action", list(Repair))
def test_the_command_of_a_remedy(monkeypatch: pytest.MonkeyPatch, action: Repair):
    """It is what would be planned: a new epoch begins at the start, and nothing else does."""
    begins: list[bool] = []

    def plan(_: object, planned: Repair, options: Any) -> Any:
        begins.append(options.from_start)
        return SimpleNamespace(lost=f"lost by {planned}", doubled="no rows")

    monkeypatch.setattr(module, "plan_repair", plan)
    remedy = module._remedy(CASE, action)
    is_new = action is Repair.NEW_EPOCH
    assert remedy.command == f"headwater repair shop orders --action {action}" + " --from-start" * is_new
    assert begins == [is_new]
    assert (remedy.possible, remedy.lost, remedy.doubled) == (True, f"lost by {action}", "no rows")


@pytest.mark.parametrize(
    ("error", "possible", "why"),
    [
        (HeadwaterError("no", remedy="Do that."), False, "no Do that."), (StoreUnreachable("away"), None, "away"),
        (KeyError("offset"), False, "It could not be planned: "),
    ],
)  # fmt: skip
def test_a_remedy_that_can_not_be_planned(
    monkeypatch: pytest.MonkeyPatch, error: Exception, possible: bool | None, why: str
):
    """Why is said; where storage is away for now, it is not called impossible."""

    def plan(*_: object) -> Any:
        raise error

    monkeypatch.setattr(module, "plan_repair", plan)
    remedy = module._remedy(CASE, Repair.REWIND)
    assert remedy.possible is possible
    assert remedy.lost.startswith(why)
