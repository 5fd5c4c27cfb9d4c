"""Type 1 by its definition: whatever order and cut events arrive in, a target has each key's row as its last event left it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from pyspark.sql import types as T
from tests.integration.change_cases import LATEST, case_events, case_results
from tests.unit.headwater_spark.auto_cdc.change_batches import (
    FIELDS,
    Merged,
    columns_of,
    event,
    events,
    in_order,
    on_plain_rows,
)
from tests.unit.headwater_spark.plain_columns import Row, col, lit

from headwater.testing.auto_cdc import expected_scd1
from headwater_spark.auto_cdc.change_columns import ChangeColumns
from headwater_spark.auto_cdc.merge_latest import AT, DELETED, EXPIRES, merge_latest

BESIDE = columns_of()
KEPT = columns_of(fields=(*FIELDS, T.StructField("at", T.LongType())), sequence_column="at")
TRUNCATES = {"truncate": col("op") == lit("T")}
FLOWS = {
    "beside": BESIDE, "kept": KEPT, "beside, truncates": replace(BESIDE, **TRUNCATES), "kept, truncates": replace(KEPT, **TRUNCATES),
}  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def _plain() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        on_plain_rows(patch)
        yield


def wanted(sent: list[Row], columns: ChangeColumns) -> list[Row]:
    return in_order(
        expected_scd1(
            sent, keys=["key"], sequence_by="at", apply_as_deletes=lambda row: row["op"] == "D", column_list=columns.names,
            apply_as_truncates=lambda row: columns.truncate is not None and row["op"] == "T",
        )
    )  # fmt: skip


@pytest.mark.parametrize("columns", [BESIDE, KEPT], ids=["beside", "kept"])
def test_cases(columns: ChangeColumns):
    """Each short sequence of events comes to the row that is written beside it, whether or not the table keeps the sequence."""
    target = Merged(columns, merge_latest)
    for step in range(3):
        target.apply([event(*one) for one in case_events(LATEST, step)])
    assert case_results(LATEST, target.rows()) == LATEST


@pytest.mark.parametrize("name", FLOWS)
@settings(max_examples=100)
@given(batches=events("UUUDDT"))
def test_any_order(name: str, batches: list[list[Row]]):
    """After each batch the rows are those of the definition, with truncates and without, a truncate at an event's own moment too."""
    columns = FLOWS[name]
    target, sent = Merged(columns, merge_latest), list[Row]()
    for batch in batches:
        given_events = [row for row in batch if row["op"] != "T" or columns.truncate is not None]
        if not given_events:
            continue
        sent += given_events
        target.apply(given_events)
        assert target.rows() == wanted(sent, columns)


def test_what_is_remembered():
    """Where the table keeps the sequence these are the deletes alone; else the sequence of every event that counts."""
    batch = [event(1, 3, "U", "a", None), event(2, 4, "D", None, None)]
    for columns, remembered in ((KEPT, [(2, 4, True)]), (BESIDE, [(1, 3, False), (2, 4, True)])):
        target = Merged(columns, merge_latest)
        target.apply([event(1, 3, "U", "a", None)])
        before = [] if columns is KEPT else [(1, 3, False)]
        assert [(row["key"], row[AT], row[DELETED]) for row in target.side.rows or ()] == before
        target.apply(batch)
        rows = [(row["key"], row[AT], row[DELETED]) for row in target.side.rows or ()]
        assert sorted(set(rows)) == remembered


def test_what_expires():
    """Deletes alone: without the sequence of a row that is there, an older event that comes late would be written over it."""
    assert EXPIRES == DELETED
