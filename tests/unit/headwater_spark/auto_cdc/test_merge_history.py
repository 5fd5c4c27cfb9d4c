"""Type 2 by its definition: whatever order and cut events arrive in, a target shows the runs of all events so far."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from tests.integration.change_cases import HISTORY, MOVES, PATCHES, case_events, case_results
from tests.unit.headwater_spark.auto_cdc.change_batches import (
    Merged,
    columns_of,
    event,
    events,
    in_order,
    on_plain_rows,
)
from tests.unit.headwater_spark.plain_columns import Row

from headwater.testing.auto_cdc import expected_scd2
from headwater_spark.auto_cdc.change_columns import START_AT
from headwater_spark.auto_cdc.merge_history import merge_history

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


def test_a_batch_again():
    """A batch that comes a second time changes nothing, neither in the target nor beside it."""
    target = Merged(columns_of(history=True, tracked=("name", "city")), merge_history)
    batch = [event(1, 10, "U", "a", "x"), event(1, 20, "U", "a", "x"), event(1, 30, "D", None, None), event(2, 5, "D", None, None)]  # fmt: skip
    target.apply(batch)
    before: Any = (target.rows(), target.side.rows)
    target.apply(batch)
    assert (target.rows(), target.side.rows) == before
