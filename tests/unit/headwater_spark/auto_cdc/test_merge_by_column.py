"""Type 1 where an event may leave values as they were: each column has the value of the last event that set it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from pyspark.sql import types as T
from tests.unit.headwater_spark.auto_cdc.change_batches import (
    FIELDS,
    SELECTED,
    SETS,
    Merged,
    columns_of,
    event,
    events,
    in_order,
    on_plain_rows,
)
from tests.unit.headwater_spark.plain_columns import Row, col, lit

from headwater.testing.auto_cdc import expected_scd1
from headwater_spark.auto_cdc.merge_by_column import DELETED_AT, EXPIRES, WRITTEN_AT, merge_by_column

NAMES = ("key", "name", "city")
TRUNCATES = {"truncate": col("op") == lit("T")}
FLOWS: dict[str, dict[str, Any]] = {
    "a NULL": {"ignored": ("name", "city")},
    "a NULL of one column": {"ignored": ("city",)},
    "truncates": {"ignored": ("name", "city"), **TRUNCATES},
    "named columns": {"selected": SELECTED},
}


@pytest.fixture(autouse=True, scope="module")
def _plain() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        on_plain_rows(patch)
        yield


def wanted(sent: list[Row], flow: Mapping[str, Any]) -> list[Row]:
    named = {"columns_to_update": "sets"} if "selected" in flow else {"ignore_null_updates": flow["ignored"]}
    rows = [{**row, "sets": SETS.get(row["known"])} for row in sent]
    return in_order(
        expected_scd1(
            rows, keys=["key"], sequence_by="at", apply_as_deletes=lambda row: row["op"] == "D",
            apply_as_truncates=lambda row: row["op"] == "T", column_list=NAMES, **named,
        )
    )  # fmt: skip


@pytest.mark.parametrize("name", FLOWS)
@settings(max_examples=100)
@given(batches=events("UUUDT"))
def test_any_order(name: str, batches: list[list[Row]]):
    """After each batch the rows are those of the definition, whatever leaves a value as it was."""
    flow = FLOWS[name]
    target, sent = Merged(columns_of(**flow), merge_by_column), list[Row]()
    for batch in batches:
        given_events = [row for row in batch if row["op"] != "T" or "truncate" in flow]
        if not given_events:
            continue
        sent += given_events
        target.apply(given_events)
        assert target.rows() == wanted(sent, flow)


@pytest.mark.parametrize(
    ("batch", "deleted", "written"),
    [
        ([event(1, 5, "D", None, None)], 5, None),
        ([event(1, 5, "D", None, None), event(1, 7, "U", "a", None)], 5, 7),
        ([event(1, 7, "D", None, None), event(1, 5, "U", "a", None)], 7, 5),
    ],
)
def test_what_is_remembered(batch: list[Row], deleted: int, written: int | None):
    """Of each key the last delete and the last upsert, also where the older one has no effect any more."""
    target = Merged(columns_of(ignored=("name",)), merge_by_column)
    target.apply(batch)
    (row,) = target.side.rows or ()
    assert (row[DELETED_AT], row[WRITTEN_AT]) == (deleted, written)


def test_what_expires():
    """A key that is deleted, and was not written since."""
    assert f"{DELETED_AT} IS NOT NULL AND ({WRITTEN_AT} IS NULL OR {WRITTEN_AT} <= {DELETED_AT})" == EXPIRES


PLACE = T.StructType([T.StructField("city", T.StringType()), T.StructField("zip", T.LongType())])


def test_fields_that_are_decided_one_by_one():
    """Where a NULL leaves a value as it was, each field of a struct has the value of the last event that set it."""
    columns = columns_of(fields=(FIELDS[0], T.StructField("name", PLACE)), ignored=("name",))
    target = Merged(columns, merge_by_column)

    def place(at: int, city: str | None, code: int | None) -> Row:
        return {**event(1, at, "U", None, None), "name": {"city": city, "zip": code}}

    for batch, value in (
        ([event(1, 1, "U", None, None)], None),
        ([place(20, None, 7), place(30, "y", None)], {"city": "y", "zip": 7}),
        ([place(10, "x", 1), place(25, "z", 9)], {"city": "y", "zip": 9}),
        ([event(1, 26, "D", None, None)], {"city": "y", "zip": None}),
    ):
        target.apply(batch)
        assert [row["name"] for row in target.table.rows] == [value]


def test_a_source_that_is_not_on_the_driver():
    """Delta copies it: what it is made of changes with the merge."""
    target = Merged(columns_of(ignored=("name",)), merge_by_column)
    target.apply([event(1, 1, "U", "a", None)])
    assert target.table.copied == [True]
