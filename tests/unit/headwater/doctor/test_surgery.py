"""A repair is carried out under the lease, after a copy was taken, and leaves a record of what it changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.checkpoints.layout import FlowState
from headwater.doctor import surgery as module
from headwater.doctor.repair_plan import RepairPlan
from headwater.doctor.surgery import operate, snapshot_flow
from headwater.errors import LeaseLost, RefusedForSafety, StorageFailed
from headwater.preflight.damage import Repair


@dataclass(frozen=True)
class Case:
    """What a repair is planned of. ``seen``: the checkpoint as it was when this was made."""

    ward: Ward
    project: Any
    start: Any
    epoch: int

    @cached_property
    def seen(self) -> str:
        """Read once."""
        return self.ward.checkpoint


class Ward:
    """A flow in epoch 2 that a repair brings to epoch 3; ``steps``: what is done in order, ``records``: what is written."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, copy: Any = None) -> None:
        self.steps: list[str] = []
        self.records: list[tuple[Any, ...]] = []
        self.state: FlowState | None = FlowState(epoch=3)
        self.is_lost = False
        checkpoint = SimpleNamespace(read_state=lambda: self.state, folder=Path("flow"))
        self.project = SimpleNamespace(
            state_folder=Path("state"),
            pipeline_id="shop",
            spec=SimpleNamespace(name="Shop"),
            lease=self.lease,
        )
        self.checkpoint = "as planned"
        self.case: Any = Case(self, self.project, SimpleNamespace(checkpoint=checkpoint), epoch=2)
        assert self.case.seen
        monkeypatch.setattr(
            module, "take_snapshot", lambda *_, reason, check: self.steps.append(reason) or copy
        )
        monkeypatch.setattr(module, "EventLogWriter", self.log)
        for name in ("record_begun", "begin_action", "end_action"):  # see test_begun_actions.py
            monkeypatch.setattr(module, name, lambda *_: None)

    @contextmanager
    def lease(self, holder: str) -> Iterator[Any]:
        self.steps.append(f"lease of {holder.partition('-')[0]}")
        yield SimpleNamespace(check=self.check)
        self.steps.append("released")

    def check(self) -> None:
        self.steps.append("checked")
        if self.is_lost:
            raise LeaseLost("Another one has it.")

    @contextmanager
    def log(self, *_: Any) -> Iterator[Any]:
        yield SimpleNamespace(emit=lambda *given, **more: self.records.append((*given, more)))

    def plan(self, error: Exception | None = None) -> RepairPlan:
        """A step back."""

        def carry_out(check: Any) -> str:
            check()
            self.steps.append("repaired")
            if error is not None:
                raise error
            return "epoch 3 is live"

        return RepairPlan(Repair.REWIND, "bronze", "raw", ("one",), "no rows", "5 rows", carry_out)


@pytest.fixture
def ward(monkeypatch: pytest.MonkeyPatch) -> Ward:
    """A flow whose checkpoint has nothing that could be copied."""
    return Ward(monkeypatch)


def test_a_copy_comes_first_and_all_is_done_under_the_lease(ward: Ward):
    """The step that counts checks the lease once more; whoever lost it changes nothing and says nothing."""
    operate(ward.case, ward.plan())
    assert ward.steps == ["lease of repair", "before rewind", "checked", "repaired", "released"]
    ward.is_lost = True
    with pytest.raises(LeaseLost):
        operate(ward.case, ward.plan())
    assert ward.steps[-1] == "checked"
    assert len(ward.records) == 1


def test_what_came_between(ward: Ward):
    """A checkpoint that an update or another repair has changed since the plan was made is left as it is, without a copy or a record."""
    ward.checkpoint = "changed by an update"
    with pytest.raises(RefusedForSafety, match="since this repair was planned"):
        operate(ward.case, ward.plan())
    assert ward.steps == ["lease of repair"]
    assert ward.records == []


def test_the_record_of_a_repair(monkeypatch: pytest.MonkeyPatch):
    """A warning with the epoch before and the one that is live now, the copy, and what is lost or comes again."""
    ward = Ward(monkeypatch, SimpleNamespace(name="copy-1"))
    done = operate(ward.case, ward.plan())
    ((kind, message, more),) = ward.records
    assert kind == "user_action"
    assert message == "rewind of bronze: epoch 3 is live. Lost: no rows. Doubled: 5 rows."
    assert (more["level"], more["flow"], more["dataset"], more["epoch"]) == ("WARN", "bronze", "raw", 3)
    assert more["details"]["user_action"] == {
        "action": "REPAIR", "repair": "rewind", "done": "epoch 3 is live", "lost": "no rows", "doubled": "5 rows",
        "snapshot": "copy-1", "epoch_before": 2, "epoch": 3,
    }  # fmt: skip
    assert (done.as_dict()["done"], done.as_dict()["snapshot"]) == ("epoch 3 is live", "copy-1")


def test_a_flow_without_a_state_stays_in_its_epoch(ward: Ward):
    """What was mended in place has opened no epoch; where nothing was there, there is no copy."""
    ward.state = None
    done = operate(ward.case, ward.plan())
    action = ward.records[0][-1]["details"]["user_action"]
    assert (action["epoch_before"], action["epoch"], action["snapshot"]) == (2, 2, None)
    assert done.as_dict()["snapshot"] is None


def test_storage_that_can_not_be_written_to(ward: Ward, monkeypatch: pytest.MonkeyPatch):
    """The file, or else the storage, is named, for a repair as for a copy."""
    for filename, where in (("state/full", "state/full"), (None, "state")):
        with pytest.raises(StorageFailed, match="No space") as failure:
            operate(ward.case, ward.plan(OSError(28, "No space left", filename)))
        assert str(failure.value.where) == where
    assert ward.records == []

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left")

    monkeypatch.setattr(module, "take_snapshot", full)
    with pytest.raises(StorageFailed):
        snapshot_flow(ward.case, reason="by hand")
