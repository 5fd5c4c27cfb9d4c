"""Type 2 by its definition: whatever order and cut events arrive in, a target shows the runs of all events so far."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from pyspark.sql import types as T
from tests.integration.change_cases import HISTORY, MOVES, PATCHES, case_events, case_results
from tests.unit.headwater_spark.auto_cdc.change_batches import (
    FIELDS,
    NOTHING,
    Merged,
    columns_of,
    event,
    events,
    in_order,
    on_plain_rows,
)
from tests.unit.headwater_spark.plain_columns import Row, array, coalesce, col, lit, when

from headwater.testing.auto_cdc import expected_scd2
from headwater_spark.auto_cdc import merge_history as module
from headwater_spark.auto_cdc.change_columns import START_AT
from headwater_spark.auto_cdc.merge_history import merge_history
from headwater_spark.auto_cdc.on_driver.rows import Rows
from headwater_spark.auto_cdc.on_driver.settle import Settled
from headwater_spark.auto_cdc.on_driver.verdict import Decided, Declined
from headwater_spark.auto_cdc.side_table import REMOVED
from headwater_spark.delta_writes.batch_transaction import BatchTransaction

NAMES = ("key", "name", "city")


@pytest.fixture(autouse=True, scope="module")
def _plain() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        on_plain_rows(patch)
        yield


def wanted(sent: list[Row], tracked: tuple[str, ...], ignored: tuple[str, ...]) -> list[Row]:
    return in_order(
        expected_scd2(
            sent, keys=["key"], sequence_by="at", apply_as_deletes=lambda row: row["op"] == "D", column_list=NAMES,
            ignore_null_updates=ignored, track_history_column_list=tracked,
        )
    )  # fmt: skip


@pytest.mark.parametrize(
    ("cases", "tracked", "ignored"),
    [(HISTORY, ("name", "city"), ()), (MOVES, ("name",), ()), (PATCHES, ("name", "city"), ("name", "city"))],
)
def test_cases(cases: dict[str, str], tracked: tuple[str, ...], ignored: tuple[str, ...]):
    """Each short sequence of events comes to the rows that are written beside it."""
    target = Merged(columns_of(history=True, tracked=tracked, ignored=ignored), merge_history)
    for step in range(3):
        batch = [event(*one) for one in case_events(cases, step)]
        if batch:
            target.apply(batch)
    rows = sorted(target.rows(), key=lambda row: (row["key"], row[START_AT]))
    assert case_results(cases, rows) == cases


@pytest.mark.parametrize(
    ("tracked", "ignored"),
    [(("name", "city"), ()), (("name",), ()), (("name", "city"), ("name", "city")), (("name",), ("city",))],
)
@settings(max_examples=100)
@given(batches=events())
def test_any_order(tracked: tuple[str, ...], ignored: tuple[str, ...], batches: list[list[Row]]):
    """After each batch the rows are those of the definition, and each event is remembered at most once."""
    target = Merged(columns_of(history=True, tracked=tracked, ignored=ignored), merge_history)
    sent: list[Row] = []
    for batch in batches:
        sent += batch
        target.apply(batch)
        assert target.rows() == wanted(sent, tracked, ignored)


# What an event sets, by the moment since when it is known: a column, both, or all there are.
SETS: dict[int, Any] = {1: ["name"], 2: ["city"], 3: ["name", "city"], 4: None}
SELECTED = coalesce(
    when(col("known") == lit(1), array(lit("name"))), when(col("known") == lit(2), array(lit("city"))),
    when(col("known") == lit(3), array(lit("name"), lit("city"))),
)  # fmt: skip


@pytest.mark.parametrize("tracked", [("name", "city"), ("name",)])
@settings(max_examples=40)
@given(batches=events())
def test_columns_that_events_name(tracked: tuple[str, ...], batches: list[list[Row]]):
    """An event sets the columns that it names, to NULL as well, and leaves the others as the event before left them."""
    target = Merged(columns_of(history=True, tracked=tracked, selected=SELECTED), merge_history)
    sent: list[Row] = []
    for batch in batches:
        for row in batch:
            own = {name: value for name, value in row.items() if name != "known"}
            sent.append({**own, "sets": SETS[row["known"]]})
        target.apply(batch)
        definition = expected_scd2(
            sent, keys=["key"], sequence_by="at", apply_as_deletes=lambda row: row["op"] == "D", column_list=NAMES,
            columns_to_update="sets", track_history_column_list=tracked,
        )  # fmt: skip
        assert target.rows() == in_order(definition)


def test_a_batch_again():
    """A batch that comes a second time changes nothing, neither in the target nor beside it."""
    target = Merged(columns_of(history=True, tracked=("name", "city")), merge_history)
    batch = [event(1, 10, "U", "a", "x"), event(1, 20, "U", "a", "x"), event(1, 30, "D", None, None), event(2, 5, "D", None, None)]  # fmt: skip
    target.apply(batch)
    before: Any = (target.rows(), target.side.rows)
    target.apply(batch)
    assert (target.rows(), target.side.rows) == before


PLACE = T.StructType([T.StructField("city", T.StringType()), T.StructField("zip", T.LongType())])
WITH_PLACE = (FIELDS[0], T.StructField("name", PLACE))


def place(at: int, city: str | None, code: int | None) -> Row:
    return {**event(1, at, "U", None, None), "name": {"city": city, "zip": code}}


def test_fields_that_are_inherited():
    """Where a NULL leaves a value as it was, a struct is filled field by field, and is NULL as long as nothing was ever in it."""
    columns = columns_of(fields=WITH_PLACE, history=True, tracked=("name",), ignored=("name",))
    target = Merged(columns, merge_history)
    nothing = event(1, 5, "U", None, None)
    target.apply([nothing, place(10, "x", None), {**nothing, "at": 15}, place(20, None, 7)])
    rows = sorted(target.table.rows, key=lambda row: row[START_AT])
    assert [(row[START_AT], row["name"]) for row in rows] == [
        (5, None), (10, {"city": "x", "zip": None}), (20, {"city": "x", "zip": 7}),
    ]  # fmt: skip


def test_what_arrow_has_settled_is_not_decided_again(monkeypatch: pytest.MonkeyPatch):
    """Spark gets the events that are left, and both make the changes of the batch."""
    schema = T.StructType([T.StructField("key", T.LongType())])
    settled = pa.table({"key": [1], REMOVED: [False]})
    left = pa.table({"key": [2]})
    given_events: list[Any] = []

    def decide(batch: Any, *_: Any) -> Any:
        given_events.append(batch)
        return Rows(NOTHING, pa.table({"key": [2], REMOVED: [True]})), "another transaction"

    monkeypatch.setattr(module, "settle_history", lambda *_: Settled(settled, left))
    monkeypatch.setattr(module, "_decide", decide)
    batch: Any = SimpleNamespace(local="all", columns=None, with_events=lambda rows: rows)
    target: Any = SimpleNamespace(rows=SimpleNamespace(schema=schema))
    side: Any = SimpleNamespace(remembered_keys=lambda _: "keys")
    decided = module._settled(batch, target, NOTHING, side, NOTHING)
    assert given_events == [left]
    assert decided.changes.to_pylist() == [{"key": 1, REMOVED: False}, {"key": 2, REMOVED: True}]
    assert decided.transaction == "another transaction"


def test_what_was_decided_is_merged_as_it_is(monkeypatch: pytest.MonkeyPatch):
    """The side table has the batch already: a second decision would be over the state after it."""
    merged: list[Any] = []
    decided = Decided(pa.table({"key": [1]}), BatchTransaction("p.f@0", 7, "{}"))
    declined = Declined("another commit was in the way", NOTHING, decided)

    def decide(*_: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(module, "try_on_driver", lambda *_: declined)
    monkeypatch.setattr(module, "_decide", decide)
    monkeypatch.setattr(module, "local_frame", lambda *_: "a frame")
    monkeypatch.setattr(
        module, "_merge", lambda _, source, __, transaction: merged.append((source.table, transaction))
    )
    batch: Any = SimpleNamespace(columns=SimpleNamespace(keys=("key",)))
    target: Any = SimpleNamespace(rows=SimpleNamespace(schema=T.StructType([])))
    side: Any = SimpleNamespace(spark=None)
    merge_history(batch, target, side, decided.transaction)
    ((table, transaction),) = merged
    assert table is decided.changes
    assert transaction.batch_id == 7
    assert "another commit was in the way" in transaction.user_metadata
