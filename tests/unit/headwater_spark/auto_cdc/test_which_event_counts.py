"""Which of two events of a key counts, as MERGE and Spark decide it: by sequence, at the same one a delete, then the values."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as T
from tests.unit.headwater_spark import plain_rows
from tests.unit.headwater_spark.plain_rows import plain_functions

from headwater_spark.auto_cdc import merge_history, merge_latest
from headwater_spark.auto_cdc.change_columns import DELETE, END_AT, SEQUENCE
from headwater_spark.auto_cdc.on_driver.rows import Rows
from headwater_spark.auto_cdc.side_table import REMOVED

TABLE = T.StructType([T.StructField("at", T.IntegerType())])


@pytest.mark.parametrize(
    ("at", "row_at", "deletes", "greater", "counts"),
    [
        (5, 4, False, False, True),
        (4, 5, False, True, False),
        (4, 5, True, True, False),
        (5, 5, False, False, False),
        (5, 5, False, True, True),
        (5, 5, True, False, True),
        (5, None, False, False, True),  # a row of another writer
    ],
)
def test_an_event_and_the_row_of_its_key(
    monkeypatch: pytest.MonkeyPatch, at: int, row_at: int | None, deletes: bool, greater: bool, counts: bool
):
    """Where the table keeps the sequence: the later one; at the same moment a delete, and then the greater values."""
    plain_functions(monkeypatch, merge_latest)
    monkeypatch.setattr(merge_latest, "_greater", lambda *_: plain_rows.lit(greater))
    batch: Any = SimpleNamespace(columns=SimpleNamespace(sequence_column="at"))
    row = {"s": {SEQUENCE: at, DELETE: deletes, merge_latest._TIE: False}, "t": {"at": row_at}}
    assert merge_latest._newer(batch, TABLE).of(row) is counts  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("kept", "tie", "greater", "counts"),
    [
        (None, False, False, True),
        (None, True, False, False),
        (None, True, True, True),
        ("new", True, False, False),
    ],
)
def test_where_the_table_does_not_keep_the_sequence(
    monkeypatch: pytest.MonkeyPatch, kept: str | None, tie: bool, greater: bool, counts: bool
):
    """What is older was left out before; of two at one moment the greater values count."""
    plain_functions(monkeypatch, merge_latest)
    monkeypatch.setattr(merge_latest, "_greater", lambda *_: plain_rows.lit(greater))
    batch: Any = SimpleNamespace(columns=SimpleNamespace(sequence_column=kept))
    row = {"s": {SEQUENCE: 5, DELETE: False, merge_latest._TIE: tie}, "t": {}}
    assert merge_latest._newer(batch, TABLE).of(row) is counts  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("remembered", "deleted", "deletes", "counts", "tie"),
    [
        (None, None, False, True, False),
        (4, False, False, True, False),
        (4, True, False, True, False),
        (5, False, False, True, True),
        (5, False, True, True, False),
        (5, True, False, False, True),
        (5, True, True, False, False),
        (6, False, True, False, False),
    ],
)
def test_an_event_and_what_is_remembered_of_its_key(
    monkeypatch: pytest.MonkeyPatch,
    remembered: int | None,
    deleted: bool | None,
    deletes: bool,
    counts: bool,
    tie: bool,
):
    """One that is not older counts, but for a key that was deleted at the same moment; the values decide between two that write."""
    plain_functions(monkeypatch, merge_latest)
    row = {SEQUENCE: 5, DELETE: deletes, merge_latest.AT: remembered, merge_latest.DELETED: deleted}
    newer, same = merge_latest._against_remembered()
    assert newer.of(row) is counts  # type: ignore[attr-defined]
    assert same.of(row) is tie  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("end", "by_column", "changes"), [(None, False, True), (5, False, True), (6, False, True), (4, False, False), (4, True, True)]
)  # fmt: skip
def test_rows_of_a_history_that_a_batch_can_change(
    monkeypatch: pytest.MonkeyPatch, end: int | None, by_column: bool, changes: bool
):
    """Those that are open, or ended at the batch's first event or later: an event may belong at the very end of one."""
    plain_functions(monkeypatch, merge_history)
    columns = SimpleNamespace(by_column=by_column)
    batch: Any = SimpleNamespace(columns=columns, first_sequence=plain_rows.lit(5))
    row = {"t": {END_AT: end}}
    assert merge_history._can_change(batch).of(row) is changes  # type: ignore[attr-defined]


def test_tombstones_are_deletes_that_the_side_table_gains():
    """Those that it loses again, and events that it gains, are none."""
    table = pa.table({DELETE: [True, True, True, False, False], REMOVED: [False, False, True, False, True]})
    frame: Any = None
    assert merge_history._counts(Rows(frame, table)) == (5, 2)
