"""Which copy a restore takes: a repair copies damage, too, and its own copy is the newest when it is run again."""

from __future__ import annotations

import pytest
from tests.unit.headwater.metrics.conftest import Pipeline

from headwater.doctor import whole_copies
from headwater.doctor.flow_case import FlowCase
from headwater.doctor.repair_plan import RepairNotPossible, RepairOptions
from headwater.doctor.repairs import plan_repair
from headwater.doctor.snapshots import Snapshot
from headwater.doctor.surgery import operate, snapshot_flow
from headwater.preflight.damage import Damage, Repair
from headwater.storage.conditions import StoreUnreachable
from headwater.storage.walking import remove_tree

LIVE = {"state_settings": {"spark.sql.shuffle.partitions": "1"}}


def case(done: Pipeline, flow: str = "bronze") -> FlowCase:
    """A flow as it is now."""
    return FlowCase(done.project, done.manifest, done.flow(flow))


def taken(done: Pipeline, flow: str = "bronze") -> Snapshot:
    """A copy of what is live now."""
    snapshot = snapshot_flow(case(done, flow), reason="asked for")
    assert snapshot is not None
    return snapshot


def lose(done: Pipeline, name: str, flow: str = "bronze") -> None:
    """Remove a folder of the live epoch."""
    remove_tree(case(done, flow).start.folder / name)


def restored(done: Pipeline, flow: str = "bronze", **options: str) -> str:
    """What the plan of a restore copies."""
    return plan_repair(case(done, flow), Repair.RESTORE, RepairOptions(**options)).steps[0]


def test_a_restore_that_is_run_again_takes_the_same_copy(done: Pipeline):
    """The copy that the first one made of what it met is damaged, and passed over; the plan says so."""
    whole = taken(done)
    lose(done, "sources")
    first = case(done)
    surgery = operate(first, plan_repair(first, Repair.RESTORE, RepairOptions()))
    assert surgery.snapshot is not None
    again = restored(done)
    assert again.startswith(f"copy the snapshot {whole.name} (batch 0)")
    assert again.endswith(f"newer ones are damaged: {surgery.snapshot.name} has FILE_LOG_LOST")
    # A whole one that is newer is the one to take, as before: what was live when another repair began.
    newer = taken(done)
    assert restored(done).startswith(f"copy the snapshot {newer.name} ")


def test_damage_that_is_passed_over(done: Pipeline):
    """State that is gone, and a position that can't be read."""
    state = done.checkpoint("silver").epoch_folder(0) / "state" / "0" / "0"
    state.mkdir(parents=True)
    (state / "1.zip").write_bytes(b"PK\x05\x06" + bytes(18))
    done.complete("silver", **LIVE)
    whole = taken(done, "silver")
    assert "damaged" not in restored(done, "silver")
    (case(done, "silver").start.folder / "offsets" / "0").write_text("v1")
    unreadable = taken(done, "silver")
    lose(done, "state", "silver")
    stateless = taken(done, "silver")
    plan = restored(done, "silver")
    assert plan.startswith(f"copy the snapshot {whole.name} ")
    assert stateless.name in plan
    assert unreadable.name in plan


def test_where_no_copy_is_whole(done: Pipeline):
    """It is refused, with what each has; one that is named is taken all the same."""
    lose(done, "sources")
    damaged = taken(done)
    with pytest.raises(RepairNotPossible, match=f"{damaged.name} has FILE_LOG_LOST"):
        restored(done)
    assert damaged.name in restored(done, snapshot=damaged.name)


def test_a_store_that_is_away_while_a_copy_is_looked_at(done: Pipeline, monkeypatch: pytest.MonkeyPatch):
    """It may be whole: neither an older one is taken instead, nor is it said that there is none."""
    taken(done)
    taken(done)
    away = [Damage(StoreUnreachable("no answer"))]
    monkeypatch.setattr(whole_copies, "_damages", lambda *_: away)
    with pytest.raises(StoreUnreachable):
        restored(done)
