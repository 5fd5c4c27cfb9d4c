"""A repair on a store that is killed before any of its writes leaves the old epoch live or the new one, never a half."""

from __future__ import annotations

import itertools
import threading

import obstore
import pytest
from tests.unit.headwater.doctor.test_open_epoch import case_of, content, ours
from tests.unit.headwater.metrics.conftest import delta_offset, done, pipeline, write_checkpoint

from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.checkpoints.whole_folders import make_folder, unfinished
from headwater.doctor.repair_plan import RepairOptions
from headwater.doctor.repairs import plan_repair
from headwater.doctor.snapshots import snapshots_of, take_snapshot
from headwater.doctor.surgery import operate
from headwater.errors import LeaseLost, RefusedForSafety
from headwater.preflight.damage import Repair

__all__ = ["done", "pipeline"]
_NUMBERS = itertools.count()
_WRITES = ("put", "copy", "delete")


@pytest.fixture
def roots(s3):
    """Both roots in one bucket."""
    number = next(_NUMBERS)
    return s3.place("places", f"killed-{number}/storage"), s3.place("places", f"killed-{number}/warehouse")


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))


class Killed(BaseException):
    """The process has died: nothing of it runs any more."""


def killed_before(number, work):
    """Do the work until its write of this number; whether it was killed. From then on nothing else is written either."""
    count, turn = itertools.count(), threading.Lock()

    def stopping(write):
        def call(*arguments, **named):
            with turn:
                if next(count) >= number:
                    raise Killed
            return write(*arguments, **named)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in _WRITES:
            patch.setattr(obstore, name, stopping(getattr(obstore, name)))
        try:
            work()
        except Killed:
            return True
    return False


def remains(folder):
    return unfinished(folder.children()[0])


ACTIONS = {
    "rewind": (Repair.REWIND, RepairOptions(batch=0)),
    "restore": (Repair.RESTORE, RepairOptions()),
    "new-epoch": (Repair.NEW_EPOCH, RepairOptions(from_version=1)),
    "from-start": (Repair.NEW_EPOCH, RepairOptions(from_start=True)),
}


# A copy of a snapshot takes the same way as one of the live epoch.
@pytest.mark.parametrize("action", ["rewind", "new-epoch", "from-start"])
def test_before_each_write(done, action):
    """Killed at any point, the live epoch is whole, also where ``flow.json`` is lost then; the same repair again succeeds."""
    checkpoint = done.checkpoint("silver")
    (checkpoint.epoch_folder(0) / "metadata").write_text('{"id":"first"}')
    take_snapshot(done.project.state_folder, checkpoint, reason="test")

    def repair():
        plan_repair(case_of(done, "silver"), *ACTIONS[action]).carry_out(ours)

    first = content(checkpoint.epoch_folder(0))
    for number in itertools.count():
        before = checkpoint.live_folder()
        killed = killed_before(number, repair)
        state = checkpoint.read_state()
        assert state is not None
        if checkpoint.live_folder() == before:
            assert killed, "it ended and changed nothing"
        assert content(checkpoint.epoch_folder(0)) == first
        assert not case_of(done, "silver").damages
        whole = [content(checkpoint.epoch_folder(epoch)) for epoch in checkpoint.epochs()[-2:]]
        assert all({"offsets/0", "commits/0"} <= files.keys() for files in whole)
        begun = checkpoint.epochs_begun()
        if not killed:
            break
        kept = checkpoint.state_file.read_text()
        checkpoint.state_file.unlink()
        survivor = checkpoint.surviving_state()
        assert survivor is not None
        assert survivor.epoch in checkpoint.epochs()
        checkpoint.state_file.write_text(kept)
        repair()
        opened = checkpoint.read_state()
        assert opened is not None
        assert opened.epoch not in begun, "a number is never used twice"
        if action != "from-start":
            assert not remains(checkpoint.folder)
    assert number >= (1 if action == "from-start" else 6)


def test_copies_before_each_write(done):
    """A copy that was not ended is none, and the next one takes away what is left of it."""
    checkpoint, state = done.checkpoint("silver"), done.project.state_folder
    epoch = content(checkpoint.epoch_folder(0))

    def copy():
        assert take_snapshot(state, checkpoint, reason="test") is not None

    for number in itertools.count():
        before = len(snapshots_of(state, "silver", "silver"))
        killed = killed_before(number, copy)
        taken = snapshots_of(state, "silver", "silver")
        assert all(content(snapshot.checkpoint) == epoch for snapshot in taken)
        assert all(snapshot.state().completed for snapshot in taken)
        if not killed:
            break
        copy()
        root = state / "snapshots" / "silver" / "silver"
        assert not remains(root)
        after = snapshots_of(state, "silver", "silver")
        assert len(after) in (before + 1, before + 2)
        assert {folder.name for folder in root.iterdir()} == {snapshot.name for snapshot in after}
    assert number >= 6


def test_a_copy_whose_mark_is_left_is_none(done):
    """All of it is there, and its writer did not come to its end: the next copy takes it away, so no plan counts on it."""
    checkpoint, state = done.checkpoint("silver"), done.project.state_folder
    first, last = (take_snapshot(state, checkpoint, reason="test") for _ in range(2))
    assert first is not None
    assert last is not None
    last.folder.with_name(f".{last.name}.making").write_text("of a writer that died")
    assert snapshots_of(state, "silver", "silver") == [first]
    case = case_of(done, "silver")
    surgery = operate(case, plan_repair(case, *ACTIONS["restore"]))
    assert first.name in surgery.plan.steps[0]
    assert not last.folder.is_dir()


def test_a_lease_that_was_lost(done):
    """Where another process may write, or has, the new epoch does not become the live one, and what the other wrote stays."""
    checkpoint = done.checkpoint("silver")
    before = checkpoint.state_file.read_text()

    def lost():
        raise LeaseLost("taken", remedy="none")

    plan = plan_repair(case_of(done, "silver"), *ACTIONS["rewind"])
    with pytest.raises(LeaseLost, match="taken"):
        plan.carry_out(lost)
    assert checkpoint.state_file.read_text() == before

    def meanwhile():
        checkpoint.write_state(FlowState(epoch=7))

    take_snapshot(done.project.state_folder, checkpoint, reason="test")
    for asked in ACTIONS.values():
        checkpoint.state_file.write_text(before)
        plan = plan_repair(case_of(done, "silver"), *asked)
        with pytest.raises(LeaseLost, match="Another process"):
            plan.carry_out(meanwhile)
        assert checkpoint.read_state() == FlowState(epoch=7)


def test_a_plan_that_is_outdated(done):
    """An update took in a batch between the plan and the lease: what the plan says of rows is no longer so, and nothing is changed."""
    case = case_of(done, "silver")
    plan = plan_repair(case, *ACTIONS["rewind"])
    write_checkpoint(case.start.folder, 1, [delta_offset(done.table("bronze"), 1)])
    before = content(done.checkpoint("silver").folder)
    with pytest.raises(RefusedForSafety, match="has changed since"):
        operate(case, plan)
    assert content(done.checkpoint("silver").folder) == before
    assert not snapshots_of(done.project.state_folder, "silver", "silver")
    now = case_of(done, "silver")
    assert operate(now, plan_repair(now, *ACTIONS["rewind"])).snapshot is not None


def test_two_that_fill_one_folder(done):
    """The second is refused before it writes; one whose work was cleared away meanwhile does not end as if it were whole."""
    target = done.checkpoint("silver").epoch_folder(3)

    def late(folder):
        (folder / "metadata").write_text("first")
        with pytest.raises(LeaseLost):
            make_folder(target, lambda other: (other / "metadata").write_text("second") and None)
        assert (target / "metadata").read_text() == "first"
        (target.with_name(".3.making")).unlink()

    with pytest.raises(LeaseLost):
        make_folder(target, late)
    assert not target.exists()
    assert not remains(target.parent)


def test_one_that_stood_still_while_another_filled_the_folder(done):
    """It had seen that the number is free; now the epoch may be live, and nothing of it is written over."""
    target = done.checkpoint("silver").epoch_folder(3)
    make_folder(target, lambda folder: (folder / "metadata").write_text("of another") and None)
    with pytest.raises(LeaseLost, match="Another process"):
        make_folder(target, lambda folder: (folder / "metadata").write_text("late") and None)
    assert content(target) == {"metadata": b"of another"}
    assert not remains(target.parent)


def test_a_failure_cleans_up(done):
    """An error in the middle, unlike a kill, leaves nothing."""
    target = done.checkpoint("silver").epoch_folder(3)

    def fill(folder):
        (folder / "metadata").write_text("x")
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        make_folder(target, fill)
    assert not target.exists()
    assert FlowCheckpoint(target.parent).epochs_begun() == [0]


def test_a_copy_whose_process_stood_still_is_none(done):
    """Past its lease an update may write what is copied, or a rename take it away: a copy of two moments is not listed."""
    state, checkpoint = done.project.state_folder, done.checkpoint("silver")
    for number in itertools.count():
        checks = iter(range(number))

        def lost(left=checks):
            if next(left, None) is None:
                raise LeaseLost("taken", remedy="none")

        try:
            taken = take_snapshot(state, checkpoint, reason="test", check=lost)
        except LeaseLost:
            assert snapshots_of(state, "silver", "silver") == []
            continue
        assert snapshots_of(state, "silver", "silver") == [taken]
        break
    assert number >= 3
