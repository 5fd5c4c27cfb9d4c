"""Positions in the log of a Delta table against what that log still has."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.unit.headwater.metrics.conftest import (
    Pipeline,
    delta_offset,
    done,
    pipeline,
    write_checkpoint,
    write_rows,
)

from headwater.doctor.start_facts import flow_start
from headwater.preflight.damage import Damage
from headwater.preflight.delta_source_checks import delta_sources
from headwater.preflight.source_checks import last_offsets, offset_of, source_identity

__all__ = ["done", "pipeline"]


def damages(done: Pipeline, **options: str) -> list[Damage]:
    """What is found for the stream from ``bronze``."""
    start = flow_start(done.project, done.manifest, done.flow("silver"))
    assert start.sources is not None
    return list(delta_sources(replace(start, sources=(replace(start.sources[0], options=options),))))


def stands_at(done: Pipeline, version: int, batch: int = 0, *, starting: bool = False) -> None:
    """Put the stream's position there."""
    folder = done.checkpoint("silver").epoch_folder(0)
    write_checkpoint(folder, batch, [delta_offset(done.table("bronze"), version, starting=starting)])


def remember_sources(done: Pipeline) -> None:
    """Save what a run of the stream saves of its source."""
    start = flow_start(done.project, done.manifest, done.flow("silver"))
    offsets = last_offsets(start)
    assert start.sources is not None
    assert offsets is not None
    identity = source_identity(start.sources[0], None, offset_of(start, offsets, 0))
    done.checkpoint("silver").update_state(sources=(identity,))


@pytest.mark.parametrize(("checkpoint", "condition"), [(True, []), (False, ["SOURCE_LOG_CUT"])])
def test_within_the_first_snapshot(done: Pipeline, checkpoint: bool, condition: list[str]):
    """While a table is first read, its version of then must still be there to be put together, or the rest is lost."""
    table = done.table("bronze")
    for number in (3, 4):
        write_rows(table, number)
    stands_at(done, 2, starting=True)
    if checkpoint:
        DeltaTable(str(table)).create_checkpoint()
    write_rows(table, 5)
    for version in range(3):
        (table / "_delta_log" / f"{version:020d}.json").unlink()
    assert [damage.condition for damage in damages(done)] == condition
    if condition:
        assert "--from-version 3" in damages(done)[0].error.remedy


@pytest.mark.parametrize("lines", [(2, 1), (1, 2)])
def test_a_table_that_is_read_twice(done: Pipeline, lines: tuple[int, int]):
    """It has a position for each time, which the log does not tell apart: the earliest counts, so that nothing is overlooked."""
    table = done.table("bronze")
    for number in (3, 4):
        write_rows(table, number)
    folder = done.checkpoint("silver").epoch_folder(0)
    write_checkpoint(folder, 0, [delta_offset(table, version) for version in lines])
    start = flow_start(done.project, done.manifest, done.flow("silver"))
    offsets = last_offsets(start)
    assert offsets is not None
    assert offset_of(start, offsets, 0)["reservoirVersion"] == 1


@pytest.mark.parametrize(
    ("content", "fault"),
    [("", "the file is empty"), ("\n", "only blanks"), ('{"add": {"path": "a', "is cut short")],
)
@pytest.mark.parametrize("later", [0, 1], ids=["the newest", "another after it"])
@pytest.mark.parametrize("started", [True, False])
def test_a_commit_that_is_not_whole(done: Pipeline, content: str, fault: str, later: int, started: bool):
    """A stream would pass over its rows, and never come back to them: unread commits, and the newest and empty ones at a first start."""
    table = done.table("bronze")
    write_rows(table, 3)
    damaged = DeltaTable(str(table)).version()
    for number in range(later):
        write_rows(table, number)
    if started:
        stands_at(done, damaged)
    else:
        shutil.rmtree(done.checkpoint("silver").epoch_folder(0))
    (table / "_delta_log" / f"{damaged:020d}.json").write_text(content)
    findings = damages(done)
    if not started and later and content:
        # A first read goes by the state that Delta puts together; of older commits, only the sizes are looked at.
        assert findings == []
        return
    assert [damage.condition for damage in findings] == ["SOURCE_LOG_DAMAGED"]
    assert f"Version {damaged} " in findings[0].error.what
    assert fault in findings[0].error.what


@pytest.mark.parametrize("later", [0, 1], ids=["nothing is unread", "another is unread"])
def test_what_was_read_is_not_looked_at_again(done: Pipeline, later: int):
    """A commit that the stream has behind it can't be passed over."""
    table = done.table("bronze")
    write_rows(table, 3)
    read = DeltaTable(str(table)).version()
    stands_at(done, read + 1)
    for number in range(later):
        write_rows(table, number)
    (table / "_delta_log" / f"{read:020d}.json").write_text("")
    assert damages(done) == []
    stands_at(done, read, starting=True)
    assert [damage.condition for damage in damages(done)] == ["SOURCE_LOG_DAMAGED"]


def feed(done: Pipeline, on: str) -> None:
    """Turn the source's change feed on or off, in a commit without rows."""
    DeltaTable(str(done.table("bronze"))).alter.set_table_properties({"delta.enableChangeDataFeed": on})


@pytest.mark.parametrize("first", [True, False])
def test_a_stream_comes_to_read_changes(done: Pipeline, first: bool):
    """What it read last recorded none: Spark plans that batch once more, also if it was the first of all. It may go on
    in a new epoch where it stands.
    """
    feed(done, "true")
    write_rows(done.table("bronze"), 3)
    if not first:
        stands_at(done, 1, 0)
        stands_at(done, 1, 1)
        assert damages(done, readChangeFeed="true") == []
        stands_at(done, 0, 0)
    (damage,) = damages(done, readChangeFeed="true")
    assert (damage.condition, damage.evidence[1][-9:]) == ("CHANGE_FEED_MISSING", "version 0")
    assert "--action new-epoch --from-version 1;" in damage.error.remedy
    assert damages(done) == []


def test_a_batch_in_flight_is_run_instead(done: Pipeline):
    """Then the batch before it is not planned again."""
    feed(done, "true")
    folder = done.checkpoint("silver").epoch_folder(0)
    stands_at(done, 2, 1)
    (folder / "commits" / "1").unlink()
    assert damages(done, readChangeFeed="true") == []


def test_no_batch_begins_where_the_feed_was_off(done: Pipeline):
    """Delta refuses a range that begins at such a commit, though it has no rows; the remedy begins behind it."""
    stands_at(done, 0, 0)
    stands_at(done, 1, 1)
    (damage,) = damages(done, readChangeFeed="true")
    assert damage.error.remedy.startswith("Set the table's property")
    assert "--from-version 1;" in damage.error.remedy
    feed(done, "false")
    feed(done, "true")
    write_rows(done.table("bronze"), 3)
    stands_at(done, 1, 0)
    (damage,) = damages(done, readChangeFeed="true")
    assert "was off at version 1" in damage.error.what
    assert "--from-version 2;" in damage.error.remedy
    stands_at(done, 2, 0)
    stands_at(done, 2, 1)
    assert damages(done, readChangeFeed="true") == []


@pytest.mark.parametrize(
    ("again", "position", "expected"),
    [
        (2, 5, "version 4 is another commit"),  # as many commits as before, and none is news to the stream
        (3, 5, "version 4 is another commit"),
        (0, 5, "the table ends at version 2"),
        (2, 3, None),  # the stream was taken back as well
    ],
)
def test_a_source_that_was_brought_back_from_a_copy(
    done: Pipeline, tmp_path: Path, again: int, position: int, expected: str | None
):
    """It has the id that it had, and other commits under the numbers that the stream has behind it: their rows would be left out."""
    table = done.table("bronze")
    while DeltaTable(str(table)).version() < 2:
        write_rows(table, 3)
    shutil.copytree(table, tmp_path / "copy")
    for number in (5, 6):
        write_rows(table, number)
    stands_at(done, 5)
    remember_sources(done)
    assert damages(done) == []
    shutil.rmtree(table)
    shutil.copytree(tmp_path / "copy", table)
    for number in range(again):
        write_rows(table, number)
    stands_at(done, position)
    found = damages(done)
    assert [damage.condition for damage in found] == ([] if expected is None else ["SOURCE_REPLACED"])
    assert expected is None or expected in found[0].error.what


def test_a_log_that_was_cleaned_says_nothing_of_what_was_read(done: Pipeline):
    """The commit that was read last has left the log: it can't be compared, and nothing is held against the table."""
    table = done.table("bronze")
    for number in (3, 4):
        write_rows(table, number)
    stands_at(done, DeltaTable(str(table)).version() + 1)
    remember_sources(done)
    write_rows(table, 5)
    DeltaTable(str(table)).create_checkpoint()
    for file in sorted((table / "_delta_log").glob("*.json"))[:-1]:
        file.unlink()
    assert damages(done) == []
