"""Batches of change events, merged by the code of AUTO CDC over plain rows: see ``plain_rows``. No batch takes the fast path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import strategies as st
from pyspark.sql import types as T
from tests.unit.headwater_spark.plain_columns import Column, Row, array, coalesce, col, lit, when
from tests.unit.headwater_spark.plain_merge import PlainTable
from tests.unit.headwater_spark.plain_rows import Frame, plain_functions
from tests.unit.headwater_spark.recorded_writes import Conf

from headwater_spark.auto_cdc import (
    change_columns,
    change_events,
    key_range,
    literals,
    merge_bitemporal,
    merge_by_column,
    merge_history,
    merge_latest,
    merge_snapshot,
    merged_values,
    truncates,
)
from headwater_spark.auto_cdc.change_columns import ChangeColumns
from headwater_spark.auto_cdc.change_events import ROW, change_batch, row_type
from headwater_spark.auto_cdc.merge_by_column import COLUMNS_AT
from headwater_spark.auto_cdc.on_driver.rows import Rows
from headwater_spark.auto_cdc.open_target import OpenTarget
from headwater_spark.auto_cdc.side_table import REMOVED
from headwater_spark.delta_writes.batch_transaction import BatchTransaction

NOTHING: Any = None
_MODULES: tuple[ModuleType, ...] = (
    change_columns, change_events, key_range, literals, merge_bitemporal, merge_by_column, merge_history, merge_latest,
    merge_snapshot, merged_values, truncates,
)  # fmt: skip
# The columns of an event: its key and values, when it is true, since when it is known, and what it does.
_TEXTS = ("name", "city", "op")
EVENT = ("key", "name", "city", "at", "known", "op")
# What an event sets, by the moment since when it is known: a column, both, or all there are.
SETS: dict[int, Any] = {1: ["name"], 2: ["city"], 3: ["name", "city"], 4: None}
SELECTED = coalesce(
    when(col("known") == lit(1), array(lit("name"))), when(col("known") == lit(2), array(lit("city"))),
    when(col("known") == lit(3), array(lit("name"), lit("city"))),
)  # fmt: skip
FIELDS = tuple(T.StructField(n, T.StringType() if n in _TEXTS else T.LongType()) for n in EVENT[:3])


def on_plain_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let AUTO CDC merge plain rows."""
    plain_functions(monkeypatch, *_MODULES)


def columns_of(**changes: Any) -> ChangeColumns:
    """A flow of events with one key; ``op`` says what an event does: U, D, or T for a truncate."""
    given: dict[str, Any] = {
        "keys": ("key",), "fields": FIELDS, "sequence": col("at"), "sequence_type": T.LongType(), "sequence_column": None,
        "delete": col("op") == lit("D"), "truncate": None, "history": False, "tracked": (), "ignored": (),
    }  # fmt: skip
    return ChangeColumns(**(given | changes))


def event(key: int, at: int, op: str, name: str | None, city: str | None, known: int = 0) -> Row:
    """One event of the source."""
    return {"key": key, "name": name, "city": city, "at": at, "known": known, "op": op}


def events(ops: str = "UUUD", moments: int = 5) -> st.SearchStrategy[list[list[Row]]]:
    """Some batches of events of few keys and moments, so that many are late, corrected, deleted or the same."""
    one = st.builds(
        event, st.integers(1, 2), st.integers(1, moments), st.sampled_from(ops), st.sampled_from([None, "a", "b"]),
        st.sampled_from([None, "x", "y"]), st.integers(1, 4),
    )  # fmt: skip
    return st.lists(st.lists(one, min_size=1, max_size=5), min_size=1, max_size=4)


class PlainSide:
    """What is remembered beside a target, as ``SideTable`` has it."""

    def __init__(self, columns: ChangeColumns, session: Any) -> None:
        self._columns, self._session = columns, session
        self.spark = SimpleNamespace(range=lambda n: Frame([{}] * n, [], session=session))
        self.rows: list[Row] | None = None
        self._names: list[str] = []

    def rows_about(self, _: Any) -> Frame | None:
        if self.rows is None:
            return None
        parts = next((row[COLUMNS_AT] for row in self.rows if row.get(COLUMNS_AT) is not None), {})
        columns_at = T.StructType([T.StructField(name, T.LongType()) for name in parts])
        kinds: dict[str, T.DataType] = {ROW: row_type(self._columns), COLUMNS_AT: columns_at}
        return Frame(map(dict, self.rows), self._names, types=kinds, session=self._session)

    def append(self, rows: Frame, _: Any) -> None:
        self._names = rows.columns
        self.rows = [*(self.rows or ()), *({name: row[name] for name in rows.columns} for row in rows.rows)]

    def merge(self, changes: Rows, keys: Sequence[str], _: Any, within: Column) -> None:
        """Replace the rows with the keys of the changes; those that are not ``within`` are not looked at."""
        new: Any = changes.frame
        changed = [tuple(row[key] for key in keys) for row in new.rows]
        assert len(set(changed)) == len(changed), "a key is changed twice"
        rows = self.rows or []
        left = [
            r for r in rows if tuple(r[key] for key in keys) not in changed or within.of({"t": r}) is not True
        ]
        self.rows = left
        self.append(new.where(~col(REMOVED)).drop(REMOVED), None)


class Merged:
    """A target that batches are merged into."""

    def __init__(self, columns: ChangeColumns, merge: Any) -> None:
        self.columns, self._merge = columns, merge
        self._session = SimpleNamespace(conf=Conf())
        self.table = PlainTable(columns.target_schema, session=self._session)
        self.side = PlainSide(columns, self._session)
        self._batches = 0

    def apply(self, batch: Sequence[Mapping[str, Any]]) -> None:
        """Merge one batch."""
        types: dict[str, T.DataType] = {name: T.StringType() for name in _TEXTS}
        frame: Any = Frame([dict(row) for row in batch], EVENT, types=types, session=self._session)
        table: Any = self.table
        target = OpenTarget(Path(), table, table.toDF())
        self._batches += 1
        before = len(self.table.settings)
        with change_batch(frame, self.columns, "main.py:1", fast_path=False) as reduced:
            self._merge(reduced, target, self.side, BatchTransaction("p.f@0", self._batches, "{}"))
        own = {("p.f@0", self._batches)}
        assert set(self.table.transactions[before:]) <= own, "a merge is of another batch"

    def rows(self) -> list[Row]:
        """The target's rows in the order of their columns' values."""
        return sorted(self.table.rows, key=lambda row: [(value is not None, value) for value in row.values()])


def in_order(rows: Sequence[Row]) -> list[Row]:
    """Rows as ``Merged.rows`` has them."""
    return sorted(rows, key=lambda row: [(value is not None, value) for value in row.values()])
