"""Snapshots by their definition: what differs from the last one is written, and a history keeps what was."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import types as T
from tests.unit.headwater_spark.auto_cdc.change_batches import FIELDS, columns_of, in_order, on_plain_rows
from tests.unit.headwater_spark.plain_columns import Row, lit
from tests.unit.headwater_spark.plain_merge import PlainTable
from tests.unit.headwater_spark.plain_rows import Frame
from tests.unit.headwater_spark.recorded_writes import Conf

from headwater.definitions.change_conditions import DuplicateKey, NullKey
from headwater.errors import FlowFailed
from headwater.testing.auto_cdc import expected_from_snapshots
from headwater_spark.auto_cdc.change_columns import ChangeColumns
from headwater_spark.auto_cdc.merge_snapshot import merge_snapshot, snapshot_changes
from headwater_spark.delta_writes.batch_transaction import BatchTransaction

VALUE = st.sampled_from([None, "a", "b"])
SNAPSHOT = st.dictionaries(st.integers(1, 3), st.tuples(VALUE, VALUE), max_size=3)


@pytest.fixture(autouse=True, scope="module")
def _plain() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        on_plain_rows(patch)
        yield


def rows_of(snapshot: dict[int, tuple[str | None, str | None]]) -> list[Row]:
    return [{"key": key, "name": name, "city": city} for key, (name, city) in snapshot.items()]


def apply(rows: list[Row], version: int, columns: ChangeColumns, table: Any) -> int:
    """Merge a snapshot; how many rows differed."""
    types: dict[str, T.DataType] = {field.name: field.dataType for field in FIELDS}
    frame: Any = Frame(rows, list(types), types=types, session=table.session)
    with snapshot_changes(frame, columns, table, "main.py:1") as changes:
        merge_snapshot(changes, lit(version), table, BatchTransaction("p.f@0", version, "{}"))  # type: ignore[arg-type]
        assert (table.transactions[-1], table.copied[-1]) == (("p.f@0", version), True)
        return changes.count


def table_of(columns: ChangeColumns) -> PlainTable:
    return PlainTable(columns.target_schema, session=SimpleNamespace(conf=Conf()))


@pytest.mark.parametrize("tracked", [None, ("name", "city"), ("name",)])
@settings(max_examples=100)
@given(snapshots=st.lists(SNAPSHOT, min_size=1, max_size=4))
def test_any_snapshots(tracked: tuple[str, ...] | None, snapshots: list[dict[int, Any]]):
    """After each one the rows are those of the definition, and a snapshot that is the last one again changes no row."""
    history = tracked is not None
    columns = columns_of(history=history, tracked=tracked or ())
    table, seen = table_of(columns), list[tuple[int, list[Row]]]()
    for version, snapshot in enumerate(snapshots, 1):
        seen.append((version, rows_of(snapshot)))
        apply(rows_of(snapshot), version, columns, table)
        wanted = expected_from_snapshots(
            seen, keys=["key"], stored_as_scd_type=2 if history else 1, track_history_column_list=tracked
        )
        assert in_order(table.rows) == in_order([{name: row[name] for name in table.types} for row in wanted])
    assert apply(rows_of(snapshots[-1]), 9, columns, table) == 0


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        ([{"key": 1, "name": "a", "city": None}, {"key": 1, "name": "a", "city": None}], DuplicateKey),
        ([{"key": None, "name": "a", "city": None}], NullKey),
    ],
)
def test_keys_that_identify_no_row(rows: list[Row], error: type[Exception]):
    """Two rows of a key, also equal ones, and a NULL in a key: nothing is written."""
    columns = columns_of()
    table = table_of(columns)
    apply([{"key": 1, "name": "a", "city": None}], 1, columns, table)
    with pytest.raises(error):
        apply(rows, 2, columns, table)
    assert table.rows == [{"key": 1, "name": "a", "city": None}]


def test_a_column_that_is_gone():
    """A snapshot without a column that the table has is refused: all of its values would be lost."""
    columns = columns_of()
    table = PlainTable(columns.target_schema.add("age", T.LongType()), session=SimpleNamespace(conf=Conf()))
    with pytest.raises(FlowFailed, match="'age'"):
        apply([], 1, columns, table)


def test_the_key_that_is_there_twice():
    """It is named, and not another one of the snapshot."""
    columns = columns_of()
    rows = [{"key": key, "name": "a", "city": None} for key in (1, 2, 2, 3)]
    with pytest.raises(DuplicateKey, match=r"the key key = 2;"):
        apply(rows, 1, columns, table_of(columns))
