"""A quarantine table read and marked without Spark."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from headwater.errors import StorageFailed, UnknownQuarantinedRow
from headwater.quarantine import columns as c
from headwater.quarantine import table as table_module
from headwater.quarantine.columns import RowStatus
from headwater.quarantine.table import (
    RowFilter,
    discard,
    held_rows,
    is_quarantine,
    known_names,
    rows,
    summaries,
)
from headwater.storage.place import Place

TYPES: dict[str, pa.DataType] = {
    c.RULES: pa.list_(pa.string()), c.EPOCH: pa.int32(), c.BATCH: pa.int64(), c.PARTITION: pa.int32(), c.OFFSET: pa.int64(),
    c.SOURCE_VALUE: pa.binary(), c.QUARANTINED_AT: pa.timestamp("us", "UTC"), c.STATUS_AT: pa.timestamp("us", "UTC"),
}  # fmt: skip


def entry(number: int, *rules: str, flow: str = "f", status: str = "held") -> dict[str, Any]:
    """A row of the table."""
    when = datetime(2026, 1, 1, 0, 0, number, tzinfo=UTC)
    return {
        c.REASON: ", ".join(rules), c.RULES: list(rules), c.ID: f"{number}-id", c.FLOW: flow, c.STATUS: status,
        c.ROW: "{}", c.QUARANTINED_AT: when,
    }  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Place:
    """Where the table lies."""
    return tmp_path


@pytest.fixture
def table(home: Place) -> Place:
    """Four rows: three held, one replayed."""
    kept_out = [
        entry(1, "a"),
        entry(2, "a", "it's"),
        entry(3, "b", flow="g"),
        entry(4, "a", status="replayed"),
    ]
    schema = pa.schema([(name, TYPES.get(name, pa.string())) for name in c.MANAGED])
    write_deltalake(str(home / "q"), pa.Table.from_pylist(kept_out, schema=schema))
    return home / "q"


def test_no_table_yet(tmp_path: Path):
    """Where nothing was kept out there is no table, and every question has an empty answer."""
    assert (summaries(tmp_path / "q"), held_rows(tmp_path / "q"), rows(tmp_path / "q", RowFilter())) == (
        [],
        0,
        [],
    )


def test_what_is_a_quarantine(table: Path, tmp_path: Path):
    """A table of somebody's own that only has the name of a quarantine is none."""
    write_deltalake(str(tmp_path / "own_quarantine"), pa.table({"id": [1], c.REASON: ["late"]}))
    assert is_quarantine(table)
    assert not is_quarantine(tmp_path / "own_quarantine")
    assert not is_quarantine(tmp_path / "nothing")


def test_names_that_have_rows(table: Path):
    """The flows and the rules that a filter may name."""
    flows, broken = known_names(table)
    assert (sorted(flows), sorted(broken)) == (["f", "g"], ["a", "b", "it's"])


def test_counts(table: Path):
    """Rows by reason, flow and status, the most first."""
    counts = [(s.reason, s.flow, s.status, s.rows) for s in summaries(table)]
    assert sorted(counts) == [
        ("a", "f", "held", 1), ("a", "f", "replayed", 1), ("a, it's", "f", "held", 1), ("b", "g", "held", 1),
    ]  # fmt: skip
    assert held_rows(table) == 3


@pytest.mark.parametrize(
    ("chosen", "ids"),
    [
        (RowFilter(), "1234"),
        (RowFilter(ids=("1", "3-")), "13"),
        (RowFilter(ids=("3-", "4-"), status=RowStatus.HELD), "3"),
        (RowFilter(ids=("1", "3-"), flow="f"), "1"),
        (RowFilter(rule="it's"), "2"),
        (RowFilter(flow="g"), "3"),
        (RowFilter(status=RowStatus.HELD, rule="a"), "12"),
    ],
)
def test_rows_by_filter(table: Path, chosen: RowFilter, ids: str):
    """Every filter, newest last; a limit keeps the newest."""
    assert "".join(row[c.ID][0] for row in rows(table, chosen)) == ids
    assert "".join(row[c.ID][0] for row in rows(table, chosen, 1)) == ids[-1]


def test_discard(table: Path):
    """Only held rows are marked, with the reason and the time; with none of them it is an error, but for who says the same again."""
    done = discard(table, RowFilter(rule="a"), "it's late")
    assert (done.rows, done.before) == (2, False)
    marked = rows(table, RowFilter(status=RowStatus.DISCARDED))
    assert [row[c.STATUS_REASON] for row in marked] == ["it's late"] * 2
    assert all(row[c.STATUS_AT] > row[c.QUARANTINED_AT] for row in marked)
    assert held_rows(table) == 1
    assert discard(table, RowFilter(rule="a"), "it's late") == replace(done, before=True)
    for chosen, reason in ((RowFilter(rule="a"), "again"), (RowFilter(rule="none"), "it's late")):
        with pytest.raises(UnknownQuarantinedRow):
            discard(table, chosen, reason)


def test_a_discard_writes_no_bounds(table: Path):
    """Those of delta-rs leave NaN out and cut long decimals: a query with a filter would pass over rows that are there (decision 0262)."""
    discard(table, RowFilter(rule="a"), "late")
    files = pa.table(DeltaTable(str(table)).get_add_actions(flatten=True))
    assert not [
        name
        for name in files.column_names
        if name.startswith("max.") and files[name].null_count < files.num_rows
    ]
    assert sum(files["num_records"].to_pylist()) == len(rows(table, RowFilter()))


@pytest.mark.parametrize("done", [True, False])
def test_a_discard_whose_answer_is_lost(table: Place, monkeypatch: pytest.MonkeyPatch, done: bool):
    """A commit that delta-rs takes for another's counts as what it is, by its rows; where there is none, the failure may pass."""
    update = DeltaTable.update

    def lost(opened: DeltaTable, **how: Any) -> Any:
        if done:
            update(opened, **how)
        message = "Failed to commit transaction"
        raise CommitFailedError(message)

    monkeypatch.setattr(DeltaTable, "update", lost)
    if done:
        assert discard(table, RowFilter(rule="a"), "late").rows == 2
        assert held_rows(table) == 1
        return
    with pytest.raises(StorageFailed, match="could not be marked: Failed to commit") as failed:
        discard(table, RowFilter(rule="a"), "late")
    assert failed.value.transient
    assert held_rows(table) == 3


def test_discard_of_what_is_replayed_meanwhile(table: Place, monkeypatch: pytest.MonkeyPatch):
    """A row that came into the table between the look and the mark stays marked as replayed."""
    opened = table_module.delta_table

    def meanwhile(place: Place) -> Any:
        monkeypatch.setattr(table_module, "delta_table", opened)
        opened(place).update(predicate=f"{c.ID} = '2-id'", updates={c.STATUS: "'replayed'"})
        return opened(place)

    query = table_module._query

    def looked(place: Place, sql: str) -> list[dict[str, Any]]:
        answer = query(place, sql)
        monkeypatch.setattr(table_module, "delta_table", meanwhile)
        return answer

    monkeypatch.setattr(table_module, "_query", looked)
    assert discard(table, RowFilter(rule="a"), "late").rows == 1
    monkeypatch.undo()
    statuses = {row[c.ID]: row[c.STATUS] for row in rows(table, RowFilter())}
    assert statuses == {"1-id": "discarded", "2-id": "replayed", "3-id": "held", "4-id": "replayed"}
