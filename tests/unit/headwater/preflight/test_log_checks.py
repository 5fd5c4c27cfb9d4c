"""What is wrong with Spark's two logs, and whether a start may mend it: only where no row is lost or doubled by that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.headwater.preflight.started import end_of, started, watermark_before

from headwater.checkpoints.log_entries import fault_of
from headwater.checkpoints.offsets import query_id, read_offsets
from headwater.delta_log.table_history import FlowCommit
from headwater.preflight import log_checks as module
from headwater.preflight.damage import Damage
from headwater.preflight.flow_start import FlowStart
from headwater.preflight.log_checks import (
    last_mark_is_damaged,
    last_mark_was_lost,
    metadata_was_lost,
    offsets_are_damaged,
    offsets_are_missing,
)

STATEFUL = {"state_settings": {"spark.sql.shuffle.partitions": "2"}}


def cut(start: FlowStart, log: str, batch: int) -> None:
    (start.folder / log / str(batch)).write_text("v1\n{")


def watermark(start: FlowStart, batch: int) -> int:
    """What the mark of a batch says."""
    text = (start.folder / "commits" / str(batch)).read_text()
    return int(json.loads(text.splitlines()[1])["nextBatchWatermarkMs"])


def mended(damages: list[Damage]) -> str:
    """What the one finding's repair says; a start carries it out by itself."""
    (damage,) = damages
    assert damage.mends_itself
    assert damage.mend is not None
    return damage.mend()


def refused(damages: list[Damage]) -> None:
    """The one finding keeps the flow from starting."""
    (damage,) = damages
    assert damage.blocks
    assert not damage.mends_itself


# -- the query's id ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("recorded", "in_log", "written_back"),
    [
        ("q", [("q", 0)], "q"),
        (None, [("q", 0)], "q"),
        ("q", [], "q"),
        ("q", [("p.orders@0", 0)], "q"),  # of foreachBatch: no id of a query
        (None, [], None),
        ("q", [("other", 0)], None),
        (None, [("q", 0), ("other", 0)], None),
        ("q", [("other", 1)], "q"),  # of another epoch
    ],
)
def test_a_lost_id_of_a_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: str | None, in_log: list[tuple[str, int]], written_back: str | None
):  # fmt: skip
    """It is written back where the flow's state and the table's log agree on one; with a wrong one a batch would be written twice."""
    commits = [FlowCommit(1, epoch, (name, 4), 1) for name, epoch in in_log]
    monkeypatch.setattr(module, "flow_commits", lambda *_: commits)
    start = started(tmp_path, [0, 1], [0], query=None, state={"query_id": recorded})
    if written_back is None:
        refused(list(metadata_was_lost(start)))
        return
    assert written_back in mended(list(metadata_was_lost(start)))
    assert query_id(start.folder) == written_back
    assert list(metadata_was_lost(start)) == []


def test_a_checkpoint_that_never_planned_has_no_id(tmp_path: Path):
    """Spark makes one when it begins."""
    assert list(metadata_was_lost(started(tmp_path, query=None))) == []


# -- marks -------------------------------------------------------------------------------------------------------------------


def test_a_damaged_mark_of_a_table(tmp_path: Path):
    """It is put aside: the batch comes again, and the table skips it."""
    start = started(tmp_path, [0, 1, 2], [0, 1, 2])
    cut(start, "commits", 2)
    assert "put aside" in mended(list(last_mark_is_damaged(start)))
    assert not (start.folder / "commits" / "2").exists()


@pytest.mark.parametrize("sink", [True, False])
def test_a_damaged_mark_before_a_planned_batch(tmp_path: Path, sink: bool):
    """It is rewritten with the watermark that the next batch began with, wherever rows go."""
    start = started(tmp_path, [0, 1, 2], [0, 1], sink=sink)
    cut(start, "commits", 1)
    mended(list(last_mark_is_damaged(start)))
    assert watermark(start, 1) == watermark_before(2)


@pytest.mark.parametrize(
    ("recorded", "state", "safe"),
    [(2, {}, True), (3, {}, True), (1, {}, False), (None, {}, False), (2, STATEFUL, False)],
)
def test_a_damaged_mark_of_a_sink(tmp_path: Path, recorded: int | None, state: dict[str, Any], safe: bool):
    """Rows would reach it a second time, unless the event log has the batch; what a stateful mark said is recorded nowhere."""
    start = started(tmp_path, [0, 1, 2], [0, 1, 2], sink=True, recorded=recorded, state=state)
    cut(start, "commits", 2)
    damages = list(last_mark_is_damaged(start))
    if safe:
        assert "rewritten" in mended(damages)
        assert fault_of(start.folder / "commits" / "2") is None
    else:
        refused(damages)
        assert damages[0].mend is not None  # on request


def test_a_mark_of_a_batch_that_is_not_planned(tmp_path: Path):
    """It could not come again: nothing is put aside unasked."""
    start = started(tmp_path, [0, 1], [0, 1, 2])
    cut(start, "commits", 2)
    refused(list(last_mark_is_damaged(start)))


@pytest.mark.parametrize(
    ("sink", "recorded", "state", "finding"),
    [
        (True, 2, {}, True), (True, 1, {}, False), (True, None, {}, False), (True, 2, STATEFUL, False), (False, 2, {}, False),
    ],
)  # fmt: skip
def test_a_lost_mark(tmp_path: Path, sink: bool, recorded: int | None, state: dict[str, Any], finding: bool):
    """Of a batch that a sink has by the event log it is written back; a table skips the batch by itself."""
    start = started(tmp_path, [0, 1, 2], [0, 1], sink=sink, recorded=recorded, state=state)
    damages = list(last_mark_was_lost(start))
    assert bool(damages) is finding
    if finding:
        mended(damages)
        assert watermark(start, 2) == watermark_before(2)
        assert list(last_mark_was_lost(started(tmp_path, sink=True, recorded=recorded))) == []


def test_a_lost_mark_of_a_damaged_plan(tmp_path: Path):
    """What the batch read is not known: another check says so."""
    start = started(tmp_path, [0, 1, 2], [0, 1], sink=True, recorded=2)
    cut(start, "offsets", 2)
    assert list(last_mark_was_lost(start)) == []


# -- plans -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("marked", "written", "known", "sink", "done"),
    [
        (True, None, True, False, "back"), (True, None, False, False, None),
        (False, 2, True, False, "back"), (False, 2, False, False, None), (False, 3, False, False, None),
        (False, 1, False, False, "aside"), (False, None, False, False, "aside"), (False, None, True, False, "aside"),
        (False, None, True, True, None), (True, None, True, True, "back"),
    ],
)  # fmt: skip
def test_the_newest_plan_is_damaged(
    tmp_path: Path, marked: bool, written: int | None, known: bool, sink: bool, done: str | None
):
    """Of a batch that is done, or in the table, it is written back from what is recorded; of one that wrote nothing it is put aside."""
    start = started(
        tmp_path,
        [0, 1, 2],
        [0, 1, 2] if marked else [0, 1],
        written=written,
        positions=[2] if known else [],
        sink=sink,
    )
    cut(start, "offsets", 2)
    damages = list(offsets_are_damaged(start))
    if done is None:
        refused(damages)
        return
    mended(damages)
    if done == "back":
        assert read_offsets(start.folder, 2).sources == (end_of(2),)
    else:
        assert not (start.folder / "offsets" / "2").exists()


@pytest.mark.parametrize(("batches", "kept"), [([0], False), ([0, 1], True)])
def test_state_of_a_first_batch(tmp_path: Path, batches: list[int], kept: bool):
    """Spark begins anew only where there is no state: it goes with the plan of the very first batch, and with no other."""
    start = started(tmp_path, batches, batches[:-1])
    (start.folder / "state" / "0").mkdir(parents=True)
    cut(start, "offsets", batches[-1])
    mended(list(offsets_are_damaged(start)))
    assert (start.folder / "state").exists() is kept


@pytest.mark.parametrize(("gone", "check"), [(True, offsets_are_missing), (False, offsets_are_damaged)])
@pytest.mark.parametrize(
    ("marked", "known", "ends"), [(True, True, end_of(1)), (True, False, end_of(2)), (False, True, end_of(1)), (False, False, None)]
)  # fmt: skip
def test_the_plan_before_the_newest(
    tmp_path: Path, gone: bool, check: Any, marked: bool, known: bool, ends: str | None
):
    """Its end is where the newest batch begins: that has to be known, unless the batch is done."""
    start = started(tmp_path, [0, 1, 2], [0, 1, 2] if marked else [0, 1], positions=[1] if known else [])
    file = start.folder / "offsets" / "1"
    if gone:
        file.unlink()
    else:
        cut(start, "offsets", 1)
    damages = list(check(start))
    if ends is None:
        refused(damages)
        return
    mended(damages)
    assert read_offsets(start.folder, 1).sources == (ends,)


def test_a_plan_is_written_back_as_the_one_that_follows(tmp_path: Path):
    """Not as one from farther away, nor as the one before it."""
    start = started(tmp_path, [0, 1, 2, 3], [0, 1, 2, 3])
    cut(start, "offsets", 2)
    mended(list(offsets_are_damaged(start)))
    assert read_offsets(start.folder, 2).sources == (end_of(3),)


def test_the_first_of_two_plans_is_gone(tmp_path: Path):
    """Batch 0 counts as any; before batch 0 there is none."""
    start = started(tmp_path, [1], [0])
    assert [damage.condition for damage in offsets_are_missing(start)] == ["OFFSETS_LOST"]
    assert list(offsets_are_missing(started(tmp_path / "other", [0]))) == []


@pytest.mark.parametrize(
    ("written", "known", "sink", "done"),
    [
        (None, (2, 3), False, "back"), (3, (2, 3), False, "back"), (None, (2, 3), True, "back"),
        (3, (3,), False, None),  # Spark needs the two newest
        (None, (), False, "aside"), (1, (), False, "aside"), (2, (), False, None), (3, (), False, None), (None, (), True, None),
    ],
)  # fmt: skip
def test_the_end_of_the_plans_is_gone(
    tmp_path: Path, written: int | None, known: tuple[int, ...], sink: bool, done: str | None
):
    """Marks without a plan: the plans are written back, or the marks put aside where the table has nothing of these batches."""
    start = started(tmp_path, [0, 1], [0, 1, 2, 3], written=written, positions=known, sink=sink)
    damages = list(offsets_are_missing(start))
    if done is None:
        refused(damages)
        return
    mended(damages)
    if done == "back":
        assert [read_offsets(start.folder, batch).sources for batch in (2, 3)] == [(end_of(2),), (end_of(3),)]
    else:
        assert sorted(file.name for file in (start.folder / "commits").iterdir() if file.is_file()) == [
            "0",
            "1",
        ]


@pytest.mark.parametrize("gone", [False, True])
@pytest.mark.parametrize(
    ("state", "neighbour", "safe"),
    [
        ({}, False, True),
        (STATEFUL, False, False),
        (STATEFUL, True, True),
        ({**STATEFUL, "batch_settings": {"spark.sql.state.encoding": "new"}}, False, True),
    ],
)
def test_state_is_read_by_the_settings_of_the_plans(
    tmp_path: Path, state: dict[str, Any], neighbour: bool, safe: bool, gone: bool
):
    """A stateful flow's plan is written back with all settings that Spark had written, or not at all: by others the state can't be read."""
    planned = [0, 1] if neighbour else [1]
    start = started(tmp_path, planned, [*planned], written=1, positions=[0, 1], state=state)
    if gone:
        (start.folder / "offsets" / "1").unlink()
    else:
        cut(start, "offsets", 1)
    check = offsets_are_missing if gone else offsets_are_damaged
    if not safe:
        refused(list(check(start)))
        return
    mended([damage for damage in check(start) if damage.condition.startswith("OFFSETS")][:1])
    settings = read_offsets(start.folder, 1).metadata.get("conf", {})
    if not neighbour:
        assert settings == {
            "spark.sql.shuffle.partitions": "200", **state.get("state_settings", {}), **state.get("batch_settings", {})
        }  # fmt: skip


def test_all_plans_are_gone(tmp_path: Path):
    """Without one there is no batch to go on from: marks alone are not put aside."""
    refused(list(offsets_are_missing(started(tmp_path, [], [0]))))


def test_whole_logs_are_no_finding(tmp_path: Path):
    """With a batch in flight and without."""
    for planned in ([0, 1, 2], [0, 1, 2, 3]):
        start = started(tmp_path, planned, [0, 1, 2], recorded=2)
        for check in (
            metadata_was_lost, last_mark_is_damaged, last_mark_was_lost, offsets_are_damaged, offsets_are_missing,
        ):  # fmt: skip
            assert list(check(start)) == []


@pytest.mark.parametrize(
    ("there", "recorded", "same"),
    [
        ('{"a": 1, "b": 2}', '{"b":2,"a":1}', True), ('{"a": 1}', '{"a": 2}', False), (None, None, True),
        ("shard-7", "shard-7", True), ("shard-7", "shard-8", False), (None, "shard-7", False), (None, "null", True),
    ],
)  # fmt: skip
def test_positions_are_compared_by_value(there: str | None, recorded: str | None, same: bool):
    """However their JSON is written; a source may write another text than JSON."""
    assert (module._value(there) == module._value(recorded)) is same
