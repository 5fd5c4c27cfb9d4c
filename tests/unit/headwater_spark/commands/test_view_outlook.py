"""What is said of a view's sources before a refresh is what the refresh finds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from headwater.graph.manifest import SourceEntry
from headwater.incremental.costs import Limits, SourceSize
from headwater.incremental.refresh_record import RefreshRecord, SourceState
from headwater.incremental.source_changes import SourceChange
from headwater.incremental.techniques import Issue, IssueType, Technique
from headwater_spark.commands.view_outlook import behind_subqueries, change_since, followed, other_columns

SOURCE = SourceEntry(kind="delta", streaming=False, name="t", location="shop/t")


def recorded(table: Path) -> RefreshRecord:
    """The record of a refresh that read the table as it is."""
    opened = DeltaTable(str(table))
    state = SourceState(str(opened.metadata().id), opened.version())
    return RefreshRecord("COMPLETE_RECOMPUTE", "", sources={"shop/t": state})


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table with a number in each of two columns."""
    write_deltalake(str(tmp_path / "t"), pa.table({"k": [1], "v": [2]}))
    return tmp_path / "t"


@pytest.mark.parametrize(
    ("columns", "kind"),
    [
        ({"k"}, None),
        ({"k", "v"}, IssueType.QUERY_FINGERPRINT_CHANGED),
        (None, IssueType.DATA_SCHEMA_CHANGED),
    ],
)
def test_columns_that_changed(table: Path, columns: set[str] | None, kind: IssueType | None) -> None:
    """A column of another type makes another query of a view that uses it, as the refresh says; a subquery counts as using all."""
    record = recorded(table)
    changed = pa.table({"k": [1], "v": ["x"]})
    write_deltalake(str(table), changed, mode="overwrite", schema_mode="overwrite")
    found = change_since(SOURCE, table, record, None if columns is None else frozenset(columns), "t")
    if kind is None:
        assert isinstance(found, SourceChange)
    else:
        assert isinstance(found, Issue)
        assert found.kind is kind
        assert found.reason.endswith("the column v of t is not what it was")


def test_another_table(table: Path) -> None:
    """A table that was made anew, and one that the last refresh did not read, are followed by no log."""
    record = recorded(table)
    other = RefreshRecord("", "", sources={"shop/t": SourceState("another", 0)})
    for one in (other, RefreshRecord("", "", sources={})):
        found = change_since(SOURCE, table, one, frozenset({"k"}), "t")
        assert isinstance(found, Issue)
        assert found.kind is IssueType.CHANGE_SET_MISSING
    assert isinstance(change_since(SOURCE, table, record, frozenset({"k"}), "t"), SourceChange)


def test_a_source_that_was_brought_back(table: Path) -> None:
    """A copy in its place has the id and the version that the last refresh read, and another history: it is called one, as the refresh does."""
    record = recorded(table)
    assert record.sources is not None
    state = replace(record.sources["shop/t"], written=1)
    told = change_since(SOURCE, table, replace(record, sources={"shop/t": state}), frozenset({"k"}), "t")
    assert isinstance(told, Issue)
    assert told.kind is IssueType.CHANGE_SET_MISSING
    assert "version 0 of t is another one than the last refresh read" in told.reason


def test_files_that_changes_lie_in_are_gone(table: Path) -> None:
    """Rows that vacuum took with their file can't be compared with those that are there now; rows that came are all there."""
    record = recorded(table)
    files = set(table.glob("*.parquet"))
    write_deltalake(str(table), pa.table({"k": [2], "v": [3]}), mode="append")
    for file in files:
        file.unlink()
    assert isinstance(change_since(SOURCE, table, record, frozenset({"k"}), "t"), SourceChange)
    write_deltalake(str(table), pa.table({"k": [4], "v": [5]}), mode="overwrite")
    told = change_since(SOURCE, table, record, frozenset({"k"}), "t")
    assert isinstance(told, Issue)
    assert told.name == "DATA_FILE_MISSING"
    assert "of t was removed" in told.reason


def test_sources_of_subqueries() -> None:
    """What changed in them recomputes the view; of others it does not."""
    sizes = [SourceSize("t", 10, 1), SourceSize("u", 10, 1)]
    assert behind_subqueries(sizes, {"t": frozenset({"k"}), "u": frozenset({"k"})}) == []
    (issue,) = behind_subqueries(sizes, {"t": frozenset({"k"}), "u": None})
    assert issue.reason == "u changed, and a subquery in an expression reads it"


def test_changes_that_are_not_followed() -> None:
    """The reason names what changed, and what stands in the way; no second way to refresh is offered."""
    sizes, ways = [SourceSize("u", 10, 1), SourceSize("t", 10, 1)], list[dict[str, Any]]()
    issue = Issue(IssueType.INCREMENTAL_PLAN_REJECTED_BY_COST_MODEL, "the query reads it 13 times")
    told = followed(issue, sizes, 1.0, 10, {}, ways, Limits())
    assert told == {
        "not_incremental": f"t, u changed, and the query reads it 13 times [{issue.name}]",
    }
    assert not ways
    assert followed(Technique.APPEND_ONLY, sizes, 9.0, 10, {}, ways, Limits())["technique"] == "APPEND_ONLY"
    assert [way["technique"] for way in ways] == ["APPEND_ONLY"]


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["v", "K"], None),
        (["k"], "without v"),
        (["k", "v", "x", "y"], "with x, y"),
        (["k", "w"], "without v, with w"),
    ],
)
def test_a_query_with_other_columns(table: Path, names: list[str], reason: str | None) -> None:
    """A column that went or came, as of `SELECT *` whose source lost one, is another query; its order and case are none."""
    issue = other_columns(table, names)
    assert (issue and issue.reason.partition(": ")[2]) == reason
    assert issue is None or issue.kind is IssueType.QUERY_FINGERPRINT_CHANGED
