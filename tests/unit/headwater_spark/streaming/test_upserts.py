"""Which event of a key counts, in a batch and against the table."""

from __future__ import annotations

import sqlite3
from types import SimpleNamespace
from typing import Any, Self

import pytest
from pyspark.sql.types import StringType
from tests.unit.headwater_spark import plain_columns
from tests.unit.headwater_spark.plain_rows import FUNCTIONS, Frame, Raised, Row, plain_functions

from headwater.errors import UsageError
from headwater_spark.plans import partition_texts
from headwater_spark.streaming import upserts


class Table:
    """A table of columns ``id``, ``at`` that records the clauses of a merge."""

    def __init__(self, *columns: str) -> None:
        self.columns, self.clauses, self.values = columns, dict[str, str](), dict[str, list[str]]()
        self.on, self.source = "", Frame([], [])

    def toDF(self) -> Any:  # noqa: N802 - Spark's name
        return SimpleNamespace(columns=list(self.columns))

    def alias(self, _: str) -> Self:
        return self

    def detail(self) -> Frame:
        return Frame([{"partitionColumns": ["ID"]}], ["partitionColumns"])

    def merge(self, source: Frame, on: str) -> Self:
        self.source, self.on = source, on
        return self

    def whenMatchedDelete(self, condition: str) -> Self:  # noqa: N802
        self.clauses["delete"] = condition
        return self

    def whenMatchedUpdate(self, condition: str, set: Any) -> Self:  # noqa: A002, N802
        self.clauses["update"], self.values["update"] = condition, list(set)
        return self

    def whenNotMatchedInsert(self, condition: str, values: Any) -> Self:  # noqa: N802
        self.clauses["insert"], self.values["insert"] = condition, list(values)
        return self

    def execute(self) -> None:
        self.done = True

    def acts(self, clause: str, was: int | None, now: int | None, *, deleted: bool = False) -> bool:
        """Whether a clause is met by an event at ``now`` and a row at ``was``, as any SQL engine reads it."""
        base = sqlite3.connect(":memory:")
        base.execute("CREATE TABLE t (at)")
        base.execute("CREATE TABLE s (at, _headwater_deleted)")
        base.execute("INSERT INTO t VALUES (?)", (was,))
        base.execute("INSERT INTO s VALUES (?, ?)", (now, deleted))
        return bool(base.execute(f"SELECT * FROM t, s WHERE {self.clauses[clause]}").fetchall())


def merged(
    monkeypatch: pytest.MonkeyPatch, rows: list[Row], table: Table, types: Any = None, **more: Any
) -> Table:
    """Merge a batch; deletes have the operation D."""
    plain_functions(monkeypatch, upserts, partition_texts)
    named: list[str] = []
    names = SimpleNamespace(forName=lambda _, name: named.append(name) or table)
    monkeypatch.setattr(upserts, "DeltaTable", names)
    is_delete = plain_columns.col("operation") == "D"
    functions = SimpleNamespace(**{**vars(FUNCTIONS), "expr": {"operation = 'D'": is_delete}.__getitem__})
    monkeypatch.setattr(upserts, "F", functions)
    upsert = upserts.upsert_changes("mine", ["id"], apply_as_deletes="operation = 'D'", **more)
    upsert(Frame(rows, ["id", "at", "operation"], types=types), 0)  # type: ignore[arg-type]
    assert named == ["mine"]
    return table


def event(key: int | str | None, at: int | None, operation: str | None = "U") -> Row:
    return {"id": key, "at": at, "operation": operation}


def test_the_newest_event_of_a_key(monkeypatch):
    """One without a place in the order is older than each that has one; NULL is a key; only what says so deletes."""
    rows = [event(1, 1), event(1, 3, "D"), event(1, 2), event(2, None), event(2, 0), event(None, 1, None)]
    table = merged(monkeypatch, rows, Table("id", "at"), sequence_by="at")
    left = [(row["id"], row["at"], row["_headwater_deleted"]) for row in table.source.rows]
    assert left == [(1, 3, True), (2, 0, False), (None, 1, False)]
    assert set(table.source.columns) == {"id", "at", "operation", "_headwater_deleted"}
    assert table.on == "`t`.`id` <=> `s`.`id`"
    assert table.values == {"update": ["`id`", "`at`"], "insert": ["`id`", "`at`"]}


@pytest.mark.parametrize(
    ("was", "now", "counts"),
    [(1, 2, True), (2, 2, True), (3, 2, False), (None, 2, True), (2, None, False), (None, None, True)],
)
def test_an_event_against_the_row(monkeypatch, was: int | None, now: int | None, counts: bool):
    """An older one is passed over, whether it deletes or not; the same one again changes nothing."""
    table = merged(monkeypatch, [event(1, 1)], Table("id", "at"), sequence_by="at")
    for deleted in (False, True):
        assert table.acts("update", was, now, deleted=deleted) is (counts and not deleted)
        assert table.acts("delete", was, now, deleted=deleted) is (counts and deleted)
        assert table.acts("insert", None, now, deleted=deleted) is not deleted


def test_a_table_without_the_order(monkeypatch):
    """It can't tell older events: each batch's newest counts."""
    table = merged(monkeypatch, [event(1, 1), event(1, 2)], Table("id"), sequence_by="at")
    assert [row["at"] for row in table.source.rows] == [2]
    assert table.acts("update", 3, 2)
    assert table.acts("delete", 3, 2, deleted=True)


def test_columns_that_only_events_have(monkeypatch):
    """They are not written; which ones, the caller may say."""
    table = merged(monkeypatch, [event(1, 1)], Table("id"), except_column_list=["at", "operation"])
    assert table.values == {"update": ["`id`"], "insert": ["`id`"]}


def test_what_nothing_orders(monkeypatch):
    """Two events of a key are refused with the key; one of each is merged; without keys there is nothing to merge by."""
    assert len(merged(monkeypatch, [event(1, 1), event(2, 1)], Table("id")).source.rows) == 2
    with pytest.raises(UsageError, match="2 events of id=1"):
        merged(monkeypatch, [event(1, 1), event(2, 1), event(1, 1)], Table("id"))
    with pytest.raises(UsageError, match="needs keys"):
        upserts.upsert_changes("mine", [])


@pytest.mark.parametrize("text", ["", "__HIVE_DEFAULT_PARTITION__"])
def test_a_key_that_its_partition_does_not_keep(monkeypatch, text: str):
    """Delta has it as NULL, where no later event of it would meet its row: it fails the batch, as a delete too, and no other key does."""
    for more in ({}, {"sequence_by": "at"}):
        table = merged(
            monkeypatch, [event(" ", 1), event(None, 1)], Table("id"), {"id": StringType()}, **more
        )
        assert [row["id"] for row in table.source.rows] == [" ", None]
        with pytest.raises(Raised, match=f"'' or '{partition_texts.STORED_AS_NULL[1]}'"):
            merged(monkeypatch, [event(text, 1, "D")], Table("id"), {"id": StringType()}, **more)
