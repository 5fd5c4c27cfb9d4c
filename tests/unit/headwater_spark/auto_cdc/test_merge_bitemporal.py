"""Bitemporal histories by their definition: what was believed at each moment, in whatever order and cut events arrive."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from pyspark.sql import types as T
from tests.unit.headwater_spark.auto_cdc.change_batches import (
    Merged,
    columns_of,
    event,
    events,
    in_order,
    on_plain_rows,
)
from tests.unit.headwater_spark.plain_columns import Row, col

from headwater.testing.auto_cdc import expected_bitemporal
from headwater_spark.auto_cdc.merge_bitemporal import merge_bitemporal

NAMES = ("key", "name", "city")


@pytest.fixture(autouse=True, scope="module")
def _plain() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        on_plain_rows(patch)
        yield


@pytest.mark.parametrize(
    ("tracked", "ignored"), [(("name", "city"), ()), (("name",), ()), (("name", "city"), ("name", "city"))]
)
@settings(max_examples=60)
@given(batches=events())
# What was believed until a moment is believed on, by an event that became known at that moment.
@example(
    batches=[
        [event(1, 1, "U", "b", None, 1), event(1, 1, "U", "a", None, 3)],
        [event(1, 1, "U", "b", None, 3)],
    ]
)
def test_any_order(tracked: tuple[str, ...], ignored: tuple[str, ...], batches: list[list[Row]]):
    """After each batch the rows are those of the definition, with the longest time for which each was believed."""
    columns = columns_of(
        history=True, tracked=tracked, ignored=ignored, system=col("known"), system_type=T.LongType()
    )
    target, sent = Merged(columns, merge_bitemporal), list[Row]()
    for batch in batches:
        sent += batch
        target.apply(batch)
        wanted = expected_bitemporal(
            sent, keys=["key"], sequence_by="at", system_sequence_by="known", apply_as_deletes=lambda row: row["op"] == "D",
            column_list=NAMES, track_history_column_list=tracked, ignore_null_updates=ignored,
        )  # fmt: skip
        assert target.rows() == in_order([{name: row[name] for name in target.table.types} for row in wanted])


def test_a_batch_again():
    """A batch that comes a second time changes nothing, neither in the target nor beside it."""
    columns = columns_of(
        history=True, tracked=("name", "city"), system=col("known"), system_type=T.LongType()
    )
    target = Merged(columns, merge_bitemporal)
    batch = [
        {"key": 1, "name": "a", "city": None, "at": at, "known": known, "op": op}
        for at, known, op in ((1, 2, "U"), (1, 3, "D"), (4, 1, "U"))
    ]
    target.apply(batch)
    before = (target.rows(), target.side.rows)
    target.apply(batch)
    assert (target.rows(), target.side.rows) == before
