"""What each repair of a flow would do: which batch it chooses, what it refuses, and what it says is lost or comes again."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.checkpoints.layout import FlowState
from headwater.doctor import file_log_lines
from headwater.doctor import repairs as module
from headwater.doctor.repair_plan import NOTHING, RepairNotPossible, RepairOptions
from headwater.errors import LeaseLost, ResetNotAllowed

AGAIN = "the rows after batch {}"


def case(**more: Any) -> Any:
    """A flow ``bronze`` into a table, whose epoch 2 is live."""
    fields: dict[str, Any] = {
        "flow": SimpleNamespace(name="bronze", target="bronze"),
        "start": SimpleNamespace(folder=Path("epoch"), state=FlowState()),
        "target": SimpleNamespace(sink_format=None, defined_at="bronze.py:3"),
        "epoch": 2, "unused_epoch": lambda: 7, "stateful": False, "table": Path("bronze"), "reached": 9, "written": 9,
        "damages": (), "positions": {}, "snapshots": (), "may_reset": True,
    }  # fmt: skip
    return SimpleNamespace(**{**fields, **more})


@pytest.fixture(autouse=True)
def storage(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What lies in storage: batches 2 to 5 with their positions, the last of them done; state is whole up to batch 4."""
    there = SimpleNamespace(readable={2, 3, 4, 5}, committed=5, whole=4, in_table=5)
    monkeypatch.setattr(module, "numbered", lambda _: there.readable)
    monkeypatch.setattr(module, "fault_of", lambda _: None)
    monkeypatch.setattr(module, "last_committed_batch", lambda _: there.committed)
    monkeypatch.setattr(module, "newest_whole_batch", lambda _: there.whole)
    monkeypatch.setattr(module, "last_in_table", lambda _: there.in_table)
    monkeypatch.setattr(module, "rows_after", lambda _, batch: AGAIN.format(batch))
    monkeypatch.setattr(module, "lines_of_log", lambda folders, *_: [str(folder) for folder in folders])
    return there


@pytest.mark.parametrize(
    ("batch", "lost"),
    [
        (4, NOTHING),
        (5, NOTHING),
        (6, "what batch 6 gave, if anything: the table has nothing of it"),
        (8, "what batches 6 to 8 gave, if anything: the table has nothing of it"),
    ],
)
def test_what_the_table_does_not_have_is_lost(batch: int, lost: str):
    """Going on after a batch leaves out those that the table has not; where rows go elsewhere that is not known."""
    assert module._lost_after(case(), batch) == lost
    assert module._lost_after(case(table=None), batch) == NOTHING


@pytest.mark.parametrize(
    ("more", "batch"),
    [
        ({}, 5),
        ({"stateful": True}, 4),
        ({"reached": 3}, 3),
        ({"reached": 3, "table": None}, 5),
        ({"reached": None}, None),
        ({"reached": 3, "stateful": True}, 3),
    ],
)
def test_a_step_back_is_to_the_newest_batch_of_which_nothing_is_lost(more: dict[str, Any], batch: int | None):
    """It is done, the table has it, and its state is whole; where one of these is not known there is none."""
    assert module._batch_to_go_back_to(case(**more)) == batch


def test_how_far_a_step_back_goes():
    """Spark needs the positions of a batch and of the one before it; the first of all has none before it."""
    for batch in (3, 5):
        plan = module._rewind(case(), RepairOptions(batch=batch))
        assert f"as it was after batch {batch} to epoch 7" in plan.steps[0]
        assert plan.doubled == AGAIN.format(batch)
    for batch in (-1, 2, 6):
        with pytest.raises(RepairNotPossible, match="2 to 5"):
            module._rewind(case(), RepairOptions(batch=batch))


def test_the_first_batch_of_all(storage: SimpleNamespace):
    """It needs no position before it."""
    storage.readable = {0, 2}
    assert "after batch 0" in module._rewind(case(), RepairOptions(batch=0)).steps[0]
    with pytest.raises(RepairNotPossible, match="0, 2"):
        module._rewind(case(), RepairOptions(batch=-1))


def test_state_that_is_not_whole_is_not_gone_back_to():
    """Up to the newest whole batch, that one included."""
    assert "after batch 4" in module._rewind(case(stateful=True), RepairOptions(batch=4)).steps[0]
    with pytest.raises(RepairNotPossible, match="whole up to batch 4, not 5"):
        module._rewind(case(stateful=True), RepairOptions(batch=5))


@pytest.mark.parametrize(
    ("written", "doubled"), [(3, NOTHING), (4, AGAIN.format(3)), (None, AGAIN.format(3)), (2, NOTHING)]
)
def test_a_position_is_rebuilt_from_the_newest_that_is_known(written: int | None, doubled: str):
    """Rows come again only where the table has batches after it, or may have."""
    plan = module._rebuild(case(positions={1: ("one",), 3: ("three",)}, written=written), RepairOptions())
    assert "epoch 7 at the end of batch 3 of epoch 2: three" in plan.steps[0]
    assert (plan.lost, plan.doubled) == (NOTHING, doubled)


def test_lists_of_files_are_looked_for_in_copies_of_the_same_epoch():
    """The checkpoint comes first, then its copies, the newest before the others; those of other epochs have other lists."""
    copies = [
        SimpleNamespace(epoch=epoch, checkpoint=Path(name))
        for epoch, name in ((2, "old"), (1, "x"), (2, "new"))
    ]
    assert module._files(case(snapshots=copies), ('{"logOffset":3}', None)) == {0: ["epoch", "new", "old"]}


def test_a_rebuild_that_is_run_again_has_nothing_to_do():
    """The epoch that it opened has written nothing that is recorded elsewhere; a damaged one without positions can't be rebuilt."""
    assert module._rebuild(case(), RepairOptions()).steps == ()
    with pytest.raises(RepairNotPossible, match="No position"):
        module._rebuild(case(damages=("damage",)), RepairOptions())


def test_what_needs_no_repair_in_place():
    """A flow without damage is left as it is; one whose damages can't be mended in place is refused, with their names."""
    assert module._mend(case(), RepairOptions()).steps == ()
    damage = SimpleNamespace(
        condition="STATE_LOST", mend=None, error=SimpleNamespace(where="state", transient=False)
    )
    with pytest.raises(RepairNotPossible, match="STATE_LOST"):
        module._mend(case(damages=(damage,)), RepairOptions())


def test_a_repair_in_place_that_stood_still_puts_nothing_aside():
    """What it found may be an entry that another process has written since; what it had mended before stays mended."""
    done: list[str] = []

    def mend(name: str) -> str:
        done.append(name)
        return name

    damages = tuple(
        SimpleNamespace(condition=name, error=SimpleNamespace(where=name), mend=partial(mend, name))
        for name in ("first", "second")
    )
    checks = iter([None, LeaseLost("taken", remedy="none")])

    def check() -> None:
        if (lost := next(checks)) is not None:
            raise lost

    with pytest.raises(LeaseLost):
        module._mend(case(damages=damages), RepairOptions()).carry_out(check)
    assert done == ["first"]


def test_only_reading_all_again_needs_the_right_to_reset(monkeypatch: pytest.MonkeyPatch):
    """A table that must not be reset may go on from a version, offsets or a time."""
    monkeypatch.setattr(module, "plan_new_epoch", lambda *_: "plan")
    protected = case(may_reset=False)
    assert module._new_epoch(protected, RepairOptions(from_version=3)) == "plan"
    with pytest.raises(ResetNotAllowed):
        module._new_epoch(protected, RepairOptions(from_start=True))
    assert module._new_epoch(case(), RepairOptions(from_start=True)) == "plan"


def test_a_copied_epoch_knows_what_its_state_was_made_with(monkeypatch: pytest.MonkeyPatch):
    """Settings, operators, stores and sources go along; batches up to the one that it stands at are not its own."""
    states: list[FlowState] = []
    monkeypatch.setattr(module, "lay_down", lambda *given: states.append(given[2]) or 7)
    before = FlowState(
        epoch=2, pending_epoch=3, sink_id="table", query_id="query", plan=("agg",), state_stores=("0/0",),
        state_settings={"a": "1"}, source_schemas={"s": {"id": "int"}}, sources=({"kind": "delta"},),
        versions={"spark": "4"}, completed=True,
    )  # fmt: skip
    done = module._copy(case(), Path("copy"), 4, before, lambda: None)
    assert done == "epoch 7 is live, as after batch 4"
    assert states == [
        FlowState(
            first_batch=5, plan=("agg",), state_stores=("0/0",), state_settings={"a": "1"},
            source_schemas={"s": {"id": "int"}}, sources=({"kind": "delta"},), versions={"spark": "4"},
        )
    ]  # fmt: skip


@pytest.mark.parametrize(("sink", "doubled"), [(None, NOTHING), ("kafka", "all rows are sent again")])
def test_what_a_full_refresh_sends_again(monkeypatch: pytest.MonkeyPatch, sink: str | None, doubled: str):
    """A table is emptied first; what a sink has sent stays sent."""
    monkeypatch.setattr(module, "plan_update", lambda *_: SimpleNamespace(resets=("a",), refreshes=("b",)))
    flow = case(target=SimpleNamespace(sink_format=sink), manifest=None)
    plan = module._full_refresh(flow, RepairOptions())
    assert (plan.steps, plan.doubled, plan.by_update) == (("a", "b"), doubled, True)


@pytest.mark.parametrize(
    ("more", "planned", "batch"),
    [
        ({"written": 6}, {5, 6}, 6),
        ({"written": 6}, {5}, 5),
        ({"written": 6, "stateful": True}, {5, 6}, 5),
        ({"written": 4}, {4, 5}, 5),
        ({"written": None}, {5, 6}, 5),
    ],
)
def test_a_copy_is_gone_on_from_where_the_table_ends(
    monkeypatch: pytest.MonkeyPatch,
    storage: SimpleNamespace,
    more: dict[str, Any],
    planned: set[int],
    batch: int,
):
    """A batch that was planned when the copy was taken, and that the table has, is not run again; state is as after its last batch."""
    copy = SimpleNamespace(name="copy", epoch=2, last_batch=5, checkpoint=Path("copy"), state=FlowState)
    storage.readable = planned
    monkeypatch.setattr(module, "newest_whole", lambda _: (copy, {}))
    plan = module._restore(case(snapshots=(copy,), by_key=False, **more), RepairOptions())
    assert f"copy the snapshot copy (batch {batch}) to epoch 7" in plan.steps[0]
    assert plan.doubled == AGAIN.format(batch)


@pytest.mark.parametrize(
    ("written", "epochs", "doubled"), [(None, [1], AGAIN.format(5)), (None, [0], None), (6, [1], None)]
)
def test_a_copy_of_an_epoch_that_the_live_one_was_copied_from(
    monkeypatch: pytest.MonkeyPatch,
    storage: SimpleNamespace,
    written: int | None,
    epochs: list[int],
    doubled: str | None,
):
    """Its batches have the same numbers as long as the live one has written none of its own; else nobody can say what is doubled."""
    copy = SimpleNamespace(name="copy", epoch=1, last_batch=5, checkpoint=Path("copy"), state=FlowState)
    storage.readable = {5}
    monkeypatch.setattr(module, "newest_whole", lambda _: (copy, {}))
    monkeypatch.setattr(module, "chain", lambda _: epochs)
    plan = module._restore(case(snapshots=(copy,), by_key=False, written=written), RepairOptions())
    assert plan.doubled == doubled or (doubled is None and "can't be known" in plan.doubled)


def test_a_copy_from_before_the_first_batch(monkeypatch: pytest.MonkeyPatch):
    """There is nothing to go on from: refused, with what else to do."""
    copy = SimpleNamespace(name="copy", epoch=2, last_batch=None, folder=Path("copy"))
    monkeypatch.setattr(module, "newest_whole", lambda _: (copy, {}))
    with pytest.raises(RepairNotPossible, match="before the flow's first batch") as caught:
        module._restore(case(snapshots=(copy,), by_key=False), RepairOptions())
    assert "--from-start" in caught.value.remedy


def test_files_by_their_age(monkeypatch: pytest.MonkeyPatch):
    """Those that were changed before a moment; one of that very millisecond was not."""
    times = {"/in/a": 4_999_999, "/in/b": 5_000_000, "/in/c": 6_000_000}
    listed = [SimpleNamespace(path=path, modified_ns=time) for path, time in times.items()]
    monkeypatch.setattr(file_log_lines, "list_files", lambda *_: listed)
    source: Any = SimpleNamespace(path="/in", options={})
    assert file_log_lines.lines_by_age(source, 5) == [{"path": "file:///in/a", "timestamp": 4}]
