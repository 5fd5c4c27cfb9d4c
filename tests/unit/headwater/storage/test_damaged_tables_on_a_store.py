"""What is wrong with a table's log has the same name on S3 as on a disk, before anything runs and in ``verify``."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.object_stores import make_old
from tests.unit.headwater.doctor.test_open_epoch import case_of
from tests.unit.headwater.doctor.test_reprocessed_rows import batch
from tests.unit.headwater.metrics.conftest import done, pipeline, write_rows
from tests.unit.headwater.storage.test_damages_on_a_store import cache, lose, roots, three

from headwater.delta_log.commits import commit_file, newest_version
from headwater.doctor.flow_cases import flow_cases
from headwater.preflight.checks import examine
from headwater.storage.delta_tables import delta_table

__all__ = ["cache", "done", "pipeline", "roots", "three"]


@pytest.mark.parametrize("share", [0, 0.5, 0.98])
def test_of_the_newest_commit(three, share):
    """Where its object is empty or cut short, no flow into the table starts, also from a machine that has read it whole before."""
    table = three.table("silver")
    file = commit_file(table, newest_version(table))
    whole = file.read_bytes()
    assert not case_of(three, "silver").damages
    file.write_bytes(whole[: int(len(whole) * share)])
    (error,) = [d.error for d in case_of(three, "silver").damages if d.condition == "TABLE_LOG_DAMAGED"]
    # Hadoop keeps checksums on disks only; Delta's own lie everywhere.
    assert (f".{file.name}.crc" in str(error.remedy)) is isinstance(file, Path)
    assert f"{file.stem}.crc" in str(error.remedy)
    file.write_bytes(whole)
    assert not case_of(three, "silver").damages


def test_of_an_older_commit(three):
    """An empty commit is found by its size among those that no checkpoint has, in the table that a flow fills and in one that it reads."""
    for table, condition in (
        (three.table("silver"), "TABLE_LOG_DAMAGED"),
        (three.table("bronze"), "SOURCE_LOG_DAMAGED"),
    ):
        for number in range(6):  # past the position of the stream
            write_rows(table, number)
        file = commit_file(table, newest_version(table) - 1)
        whole = file.read_bytes()
        file.write_bytes(b"")
        found = [damage for damage in case_of(three, "silver").damages if damage.condition == condition]
        assert [damage.error.where for damage in found] == [str(file)]
        file.write_bytes(whole)
        assert condition not in {damage.condition for damage in case_of(three, "silver").damages}


def test_of_a_commit_that_is_a_copy(three):
    """The newest commit under the next number: neither who fills the table starts nor a stream from it."""
    table = three.table("bronze")
    for number in range(6):  # past the position of the stream
        write_rows(table, number)
    newest = newest_version(table)
    copy = commit_file(table, newest + 1)
    copy.write_bytes(commit_file(table, newest).read_bytes())
    assert "TABLE_LOG_DAMAGED" in {damage.condition for damage in case_of(three, "bronze").damages}
    assert "SOURCE_LOG_DAMAGED" in {damage.condition for damage in case_of(three, "silver").damages}
    copy.unlink()
    assert not case_of(three, "silver").damages


def test_a_commit_of_another_content(three):
    """Zeros in place of what was there are seen, though its size is the same: a copy on this machine has the time of its object."""
    file = commit_file(three.table("silver"), newest_version(three.table("silver")))
    assert not case_of(three, "silver").damages
    make_old(file, 60)
    assert not case_of(three, "silver").damages
    file.write_bytes(b"\0" * len(file.read_bytes()))
    assert "TABLE_LOG_DAMAGED" in [damage.condition for damage in case_of(three, "silver").damages]


def lose_commit(version):
    return lambda table: (table / "_delta_log" / f"{version:020d}.json").unlink()


def spoil_checkpoint(table, *, cut=True, gone=False, cleaned=False):
    delta_table(table).create_checkpoint()
    (file,) = [
        path
        for path in (table / "_delta_log").iterdir()
        if ".checkpoint" in path.name and path.name[0].isdigit()
    ]
    if gone:
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-9] if cut else b"")
    if cleaned:
        lose_commit(0)(table)


@pytest.mark.parametrize("flow", ["silver", "gold"])
@pytest.mark.parametrize(
    ("how", "remedy"),
    [
        ({"cut": True}, "move away what is left of it"),
        ({"cut": False}, "move away what is left of it"),
        ({"cleaned": True}, "--full-refresh"),
    ],
    ids=["cut", "empty", "cut, and its commits cleaned away"],
)
def test_of_a_tables_checkpoint(three, flow, how, remedy):
    """It is named with what to do, which depends on whether the commits before it are there; for a view, too."""
    batch(three, 3, 4)
    spoil_checkpoint(three.table(flow), **how)
    first, *_ = case_of(three, flow).damages
    assert (first.condition, first.blocks) == ("TABLE_LOG_DAMAGED", True)
    assert ".checkpoint.parquet" in str(first.error.where)
    assert remedy in first.error.remedy


def test_of_a_checkpoint_that_is_gone(three):
    """delta-rs opens no such table, though every commit is there; a store's is named as well, whose copy on this machine needs no checkpoint."""
    table = three.table("silver")
    spoil_checkpoint(table, gone=True)
    found = [damage.error for damage in case_of(three, "silver").damages]
    assert [error.condition for error in found] == ["TABLE_LOG_DAMAGED"]
    assert "is gone" in found[0].what
    assert "`_last_checkpoint` beside it" in found[0].remedy
    (table / "_delta_log" / "_last_checkpoint").unlink()
    assert not case_of(three, "silver").damages


@pytest.mark.parametrize(("named", "fault"), [(True, "is gone"), (False, "begins at version 1")])
def test_of_a_log_without_its_beginning(three, named, fault):
    """Where the commits before the lost checkpoint were cleaned away, older rows are not known, whether or not anything names it."""
    table = three.table("silver")
    batch(three, 3, 4)
    spoil_checkpoint(table, gone=True, cleaned=True)
    if not named:
        (table / "_delta_log" / "_last_checkpoint").unlink()
    first, *_ = case_of(three, "silver").damages
    assert (first.condition, first.blocks) == ("TABLE_LOG_DAMAGED", True)
    assert fault in first.error.what
    assert "--full-refresh" in first.error.remedy


def test_verify_looks_at_views(three, capsys):
    """A hole in a view's log is named by the verb that names it for tables."""
    batch(three, 3, 4)
    for value in (7, 8):
        write_rows(three.table("gold"), value)
    assert not [
        damage
        for case in flow_cases(three.project, views=True)
        for damage in case.damages
        if "LOG" in damage.condition
    ]
    lose_commit(1)(three.table("gold"))
    conditions = {
        case.flow.name: [damage.condition for damage in case.damages]
        for case in flow_cases(three.project, views=True)
    }
    assert conditions["gold"][0] == "TABLE_LOG_HOLE"
    assert "gold" not in {case.flow.name for case in flow_cases(three.project)}


@pytest.mark.parametrize(
    ("harm", "condition"),
    [(lose, "TABLE_GONE"), (lose_commit(3), "TABLE_ROLLED_BACK"), (lose_commit(1), "TABLE_LOG_HOLE")],
    ids=["gone", "rolled back", "hole"],
)
def test_of_tables(three, harm, condition):
    """A table that is gone, that was rolled back, or whose log has a hole."""
    three.checkpoint("silver").update_state(sink_version=3)
    harm(three.table("silver"))
    assert examine(case_of(three, "silver").start)[0].condition == condition
