"""Positions that can't follow each other are seen, and written back only where it is certain what they were."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.checkpoints.offsets import read_offsets
from headwater.preflight.damage import Repair
from headwater.preflight.flow_start import FlowStart, Positions
from headwater.preflight.position_checks import goes_back, position_went_back


def delta(version: int, table: str = "t") -> dict[str, Any]:
    """Where a stream over a Delta table stands."""
    return {"reservoirId": table, "reservoirVersion": version, "index": -1, "isStartingVersion": False}


def files(batch: int) -> dict[str, Any]:
    """Where a stream over files stands."""
    return {"logOffset": batch}


PAIRS = {
    "the next version": ([delta(3)], [delta(4)], False),
    "the same version": ([delta(3)], [delta(3)], False),
    "an older version": ([delta(4)], [delta(3)], True),
    "another table under the path": ([delta(4)], [delta(0, "u")], False),
    "an older batch of files": ([files(2)], [files(1)], True),
    "one of two sources": ([delta(3), files(2)], [delta(4), files(1)], True),
    "one of two, the other stands still": ([delta(3), files(2)], [delta(3), files(3)], False),
    "a source that is read for the first time": ([None, files(2)], [delta(0), files(2)], False),
    "a topic that was made again": ([{"t": {"0": 9}}], [{"t": {"0": 0}}], False),
    "another number of sources": ([delta(4)], [delta(3), files(1)], False),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_pairs(pair: str):
    """Only an earlier place in the same table or folder is a step back."""
    before, after, expected = PAIRS[pair]
    assert goes_back(before, after) is expected


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=3), st.data())
def test_any_positions(steps: list[tuple[int, int]], data: st.DataObject):
    """What grew or stood still is in order, and the other way round it is not, unless nothing grew."""
    kinds = [data.draw(st.sampled_from([delta, files])) for _ in steps]
    before = [kind(min(step)) for kind, step in zip(kinds, steps, strict=True)]
    after = [kind(max(step)) for kind, step in zip(kinds, steps, strict=True)]
    assert not goes_back(before, after)
    assert goes_back(after, before) == (before != after)


def start_at(
    root: Path,
    offsets: Sequence[Mapping[str, Any]],
    *,
    committed: Sequence[int],
    recorded: Sequence[Mapping[str, Any] | None],
) -> FlowStart:
    """A flow with such entries in its two logs, and with what was recorded of each batch elsewhere."""
    folder = root / "orders" / "f" / "0"
    for log in ("offsets", "commits"):
        (folder / log).mkdir(parents=True)
    for batch, offset in enumerate(offsets):
        (folder / "offsets" / str(batch)).write_text(f"v1\n{{}}\n{json.dumps(offset)}")
    for batch in committed:
        (folder / "commits" / str(batch)).write_text("v1\n{}")

    def position(batch: int) -> Positions | None:
        known = recorded[batch]
        return None if known is None else (json.dumps(known),)

    checkpoint = FlowCheckpoint(root / "orders" / "f")
    return FlowStart("p", "f", "orders", checkpoint, FlowState(), None, None, position=position)


RIGHT = (delta(3), delta(4))
CERTAIN: dict[str, tuple[Sequence[int], Sequence[Any], bool]] = {
    "all is recorded": ((0, 1), RIGHT, True),
    "the last batch is not done": ((0,), RIGHT, False),
    "one is not recorded": ((0, 1), (delta(3), None), False),
    "the records are swapped, too": ((0, 1), RIGHT[::-1], False),
}


@pytest.mark.parametrize("known", CERTAIN)
def test_swapped_entries(tmp_path: Path, known: str):
    """They are named; a start writes them back where both batches are recorded in order and done, else a person decides."""
    committed, recorded, mends = CERTAIN[known]
    start = start_at(tmp_path, RIGHT[::-1], committed=committed, recorded=recorded)
    (damage,) = position_went_back(start)
    assert (damage.condition, damage.mends_itself) == ("OFFSETS_DAMAGED", mends)
    assert (Repair.MEND in damage.repairs) is mends
    if damage.mend is not None:
        damage.mend()
        assert [read_offsets(start.folder, batch).source(0) for batch in (0, 1)] == list(RIGHT)


@pytest.mark.parametrize(
    ("committed", "recorded", "mends"),
    [((0, 1), RIGHT, True), ((0, 1), (None, RIGHT[1]), True), ((0,), RIGHT, False), ((0, 1), RIGHT[:1] * 2, None), ((0, 1), (RIGHT[0], None), None)],
    ids=["all is recorded", "the newest is recorded", "not done", "recorded as it is", "not recorded"],
)  # fmt: skip
def test_the_newest_entry_is_a_copy_of_the_one_before(
    tmp_path: Path, committed: tuple[int, ...], recorded: Sequence[Any], mends: bool | None
):
    """Whole and readable, and its batch would be read again: what was recorded of the batch tells, and is written back."""
    start = start_at(tmp_path, RIGHT[:1] * 2, committed=committed, recorded=recorded)
    found = list(position_went_back(start))
    assert [damage.mends_itself for damage in found] == ([] if mends is None else [mends])
    for damage in found:
        assert damage.condition == "OFFSETS_DAMAGED"
        assert "The position of batch 1 of 'f' is that of batch 0" in damage.error.what
        if damage.mend is not None:
            damage.mend()
            assert [read_offsets(start.folder, batch).source(0) for batch in (0, 1)] == list(RIGHT)


def test_entries_in_order(tmp_path: Path):
    """A single batch, two in order, and one whose entry can't be read, which another check names."""
    for name, entries in (("one", RIGHT[:1]), ("two", RIGHT), ("same", RIGHT[:1] * 2)):
        start = start_at(tmp_path / name, entries, committed=(0, 1), recorded=(None, None))
        assert list(position_went_back(start)) == []
    start = start_at(tmp_path / "cut", RIGHT[::-1], committed=(0, 1), recorded=RIGHT)
    (start.folder / "offsets" / "1").write_text("v1\n{")
    assert list(position_went_back(start)) == []
