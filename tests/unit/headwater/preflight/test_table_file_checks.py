"""Data files that are gone or cut stop who fills the table: those of the newest commit at each start, all in a deep check."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.unit.headwater.storage.conftest import s3

from headwater.checkpoints.flow_role import FlowRole
from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.delta_log.missing_files import missing_of_all, missing_of_newest
from headwater.preflight.checks import CHECKS, CHECKS_OF_ONCE_FLOWS, CHECKS_OF_VIEWS
from headwater.preflight.flow_start import FlowStart
from headwater.preflight.table_file_checks import files_are_gone
from headwater.storage.delta_tables import append
from headwater.storage.place import Place

__all__ = ["s3"]


@pytest.fixture(params=["disk", "s3"])
def table(request, s3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A table of three commits, with one file each."""
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))
    place: Place = tmp_path / "t" if request.param == "disk" else s3.place("places", f"{tmp_path.name}/t")
    for number in range(3):
        append(place, pa.table({"id": [number], "p": ["x"]}), mode="append", partition_by=["p"])
    return place


def files(table: Place) -> list[Place]:
    """The data files, oldest first."""
    return sorted((table / "p=x").iterdir(), key=lambda file: int(read(file)))


def read(file: Place) -> int:
    """The one id in a file."""
    from pyarrow import parquet

    return int(parquet.read_table(pa.BufferReader(file.read_bytes()))["id"][0].as_py())


def start_of(table: Place, root: Path, *, deep: bool = False) -> FlowStart:
    """The start of a flow into the table."""
    checkpoint = FlowCheckpoint(root / "checkpoints" / "t" / "t")
    return FlowStart("p", "t", "t", checkpoint, FlowState(), table, "id", deep=deep)


def test_the_newest_file(table: Place, tmp_path: Path):
    """Gone or cut it is named, with the way on; whole, nothing is."""
    start = start_of(table, tmp_path)
    assert list(files_are_gone(start)) == []
    assert list(files_are_gone(replace(start, deep=True))) == []
    newest = files(table)[-1]
    whole = newest.read_bytes()
    for harm, what in (
        (lambda: newest.write_bytes(whole[:100]), "has 100 bytes"),
        (newest.unlink, "is gone"),
    ):
        harm()
        (damage,) = files_are_gone(start)
        assert damage.condition == "TABLE_FILES_GONE"
        assert f"{newest.name} {what}" in damage.error.what
        assert "--full-refresh t" in damage.error.remedy
    newest.write_bytes(whole)
    assert list(files_are_gone(start)) == []


def test_an_older_file(table: Place, tmp_path: Path):
    """It is found by a deep check."""
    files(table)[0].unlink()
    assert list(files_are_gone(start_of(table, tmp_path))) == []
    start = start_of(table, tmp_path, deep=True)
    assert [damage.blocks for damage in files_are_gone(start)] == [True]
    assert [damage.blocks for damage in files_are_gone(replace(start, role=FlowRole.VIEW))] == [False]


def test_what_was_removed_may_be_gone(tmp_path: Path):
    """Files that later commits removed are no longer the table's, and a commit without files does not hide those before it."""
    place = tmp_path / "t"
    write_deltalake(str(place), pa.table({"id": [1, 2]}))
    write_deltalake(str(place), pa.table({"id": [3]}), mode="append")
    before = {file.name for file in place.glob("*.parquet")}
    DeltaTable(str(place)).delete("id = 3")
    removed = next(file for file in place.glob("*.parquet") if file.name in before and read(file) == 3)
    removed.unlink()
    assert missing_of_newest(place) == missing_of_all(place) == []
    next(place.glob("*.parquet")).unlink()
    assert len(missing_of_newest(place)) == 1


def test_every_kind_of_flow_is_checked():
    """A view and a flow that runs once have no checkpoint, and a table; a view makes itself good."""
    assert all(files_are_gone in checks for checks in (CHECKS, CHECKS_OF_ONCE_FLOWS, CHECKS_OF_VIEWS))
