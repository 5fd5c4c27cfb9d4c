"""A table's head is what delta-rs says it is, mostly without opening the table, and never an old one."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from headwater.delta_log.commits import commit_versions
from headwater.delta_log.heads import LogHead, log_head
from headwater.delta_log.versions import table_head
from headwater.errors import SourceUnreachable

NEWEST = 5
LINES = {
    "empty": "",
    "blank": "\n\n",
    "cut": None,
    "garbage": "xx\n",
    "array": "[1]\n",
    "unknown": '{"foo": {}}\n',
}


def write(table: Path, *, commits: int = 1, mode: str = "append") -> None:
    for _ in range(commits):
        write_deltalake(str(table), pa.table({"id": [1, 2]}), mode=mode)


def commit_file(table: Path, version: int, suffix: str = ".json") -> Path:
    return table / "_delta_log" / f"{version:020}{suffix}"


def checksum(table: Path, version: int, *, id_: str | None = None) -> None:
    """A checksum file as Delta writes it."""
    opened = DeltaTable(str(table), version=version)
    text = {"metadata": {"id": id_ or str(opened.metadata().id)}, "protocol": {"minReaderVersion": 1}}
    commit_file(table, version, ".crc").write_text(json.dumps(text))


def openings(table: Path, protocol: Mapping[str, object] | None = None) -> int:
    """How often a look opens the table; ``protocol``: what is then read there."""
    opened: list[int] = []

    def open_it() -> LogHead:
        opened.append(1)
        found = by_delta_rs(table)
        return LogHead(
            found[0] if found else "", max(commit_versions(table)), protocol or {"minReaderVersion": 1}
        )

    log_head(table / "_delta_log", open_it)
    return len(opened)


def by_delta_rs(table: Path) -> tuple[str, int] | None:
    """What delta-rs says; None where it opens nothing."""
    try:
        opened = DeltaTable(str(table))
    except Exception:
        return None
    return str(opened.metadata().id), opened.version()


def head_of(table: Path) -> tuple[str, int] | None:
    try:
        head = table_head(table)
    except SourceUnreachable:
        return None
    return (head.table_id, head.version) if head is not None else None


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[int | None, Path]:
    """Tables of six versions, by the version of their checkpoint."""
    made: dict[int | None, Path] = {}
    for checkpoint in (None, 2, NEWEST):
        made[checkpoint] = tmp_path_factory.mktemp("tables") / "t"
        for version in range(NEWEST + 1):
            write(made[checkpoint])
            if version == checkpoint:
                DeltaTable(str(made[checkpoint])).create_checkpoint()
    return made


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table of three versions."""
    write(tmp_path / "t", commits=3)
    return tmp_path / "t"


def _lose(name: str) -> Callable[[Path], None]:
    return lambda log: (log / name).unlink(missing_ok=True)


@pytest.mark.parametrize("checkpoint", [None, 2, NEWEST])
def test_as_delta_rs_says(tables, tmp_path, checkpoint):
    """Whole logs, commits that are damaged in every way, gaps, lost hints and checkpoints: the same answer, or a refusal of both."""
    damages: dict[str, Callable[[Path], None]] = {
        "whole": lambda _: None,
        **{f"no {version}": _lose(f"{version:020}.json") for version in (0, 2, 4, NEWEST)},
        "no hint": _lose("_last_checkpoint"),
        "no checkpoint": _lose(f"{checkpoint or 0:020}.checkpoint.parquet"),
    }
    for version in (1, 4, NEWEST):
        for name, line in LINES.items():

            def damage(log: Path, version: int = version, line: str | None = line) -> None:
                file = log / f"{version:020}.json"
                file.write_text(file.read_text()[:-30] if line is None else line)

            damages[f"{version} {name}"] = damage
    for name, damage in damages.items():
        # What is read once is whole: a look that comes again says nothing of older commits, which it does not need.
        for seen in (False, True) if name[0] not in "14" else (False,):
            copy = tmp_path / f"{name}, {seen}"
            shutil.copytree(tables[checkpoint], copy)
            if seen:
                assert head_of(copy) == by_delta_rs(copy), name
            damage(copy / "_delta_log")
            for _ in range(2):
                assert head_of(copy) == by_delta_rs(copy), (name, seen)


def test_a_log_that_was_seen_is_not_opened_again(table):
    """Neither where nothing has come, nor for new commits, nor behind a newer checkpoint."""
    DeltaTable(str(table)).create_checkpoint()
    assert openings(table) == 1
    assert openings(table) == 0
    write(table, commits=2)
    DeltaTable(str(table)).create_checkpoint()
    write(table)
    assert openings(table) == 0
    assert head_of(table) == by_delta_rs(table)


def test_a_new_commit_is_seen_at_once(table):
    """Also where the folder keeps its time, as on some mounted stores."""
    log = table / "_delta_log"
    head_of(table)
    for _ in range(20):
        before = log.stat()
        write(table)
        os.utime(log, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert head_of(table) == by_delta_rs(table)


def test_a_table_made_anew_is_another_one(table):
    """With as many versions as before, and with fewer."""
    for commits in (3, 2):
        old = head_of(table)
        shutil.rmtree(table)
        write(table, commits=commits)
        assert head_of(table) == by_delta_rs(table)
        assert head_of(table) != old
    shutil.rmtree(table)
    assert head_of(table) is None


def test_a_table_made_anew_with_a_checkpoint_is_another_one(table):
    """One that has its checkpoint at the version that was seen of the old one, as a shallow clone has it at its first."""
    before = head_of(table)
    shutil.rmtree(table)
    write(table, commits=3)
    DeltaTable(str(table)).create_checkpoint()
    assert head_of(table) == by_delta_rs(table) != before
    write(table)
    assert head_of(table) == by_delta_rs(table)


def test_the_newest_id_counts(table):
    """A version that gives the table another id, as a replaced table has it, is read from its commit, seen before or not."""
    for seen in (True, False):
        copy = table.with_name(f"copy {seen}")
        shutil.copytree(table, copy)
        if seen:
            assert head_of(copy) == by_delta_rs(copy)
        first = commit_file(copy, 0).read_text().splitlines()
        metadata = json.loads(next(line for line in first if "metaData" in line))
        metadata["metaData"]["id"] = "11111111-0000-4000-8000-000000000001"
        commit_file(copy, 3).write_text(json.dumps(metadata) + "\n")
        write(copy)
        assert head_of(copy) == by_delta_rs(copy) == ("11111111-0000-4000-8000-000000000001", 4)


def test_a_checksum_saves_the_opening(table):
    """Delta's own tables are not opened even the first time; a damaged checksum says nothing, and a newer commit counts more."""
    DeltaTable(str(table)).create_checkpoint()
    write(table, commits=2)
    checksum(table, 3)
    copy = table.with_name("copy")
    shutil.copytree(table, copy)
    assert openings(table) == 0
    assert head_of(table) == by_delta_rs(table)
    commit_file(copy, 3, ".crc").write_text('{"metadata": {"id"')
    assert openings(copy) == 1


@pytest.mark.parametrize(
    "protocol", [{"minReaderVersion": 4}, {"minReaderVersion": 3, "readerFeatures": ["new"]}]
)
def test_what_is_not_known_is_opened_each_time(table, protocol):
    """A feature may lay out a log in a way that only a library knows."""
    head_of(table)
    commit_file(table, 3).write_text(json.dumps({"protocol": {"minWriterVersion": 7, **protocol}}) + "\n")
    assert [openings(table, protocol) for _ in range(2)] == [1, 1]


def test_a_checkpoint_of_several_files_is_left_to_the_library(table):
    """Other forms of checkpoints are not looked into."""
    commit_file(table, 2, ".checkpoint.0000000001.0000000002.parquet").touch()
    assert [openings(table) for _ in range(2)] == [1, 1]


def test_a_cleaned_log(table):
    """Where the version that was seen is gone, and commits after it, the table is opened again."""
    head_of(table)
    write(table, commits=2)
    DeltaTable(str(table)).create_checkpoint()
    for version in range(4):
        commit_file(table, version).unlink()
    assert openings(table) == 1
    assert head_of(table) == by_delta_rs(table)
