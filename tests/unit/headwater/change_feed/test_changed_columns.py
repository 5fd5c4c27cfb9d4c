"""Which updates touched a column."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyarrow import parquet

from headwater.change_feed.changed_columns import updates_that_change

PRE, POST = "update_preimage", "update_postimage"


@pytest.fixture
def change_file(orders, tmp_path):
    """Write a change file of rows (type, amount, note)."""
    orders.append([1])

    def write(*rows):
        file = tmp_path / "cdc-1.parquet"
        columns = dict(zip(("_change_type", "amount", "note"), zip(*rows, strict=True), strict=True))
        parquet.write_table(pa.table({name: list(values) for name, values in columns.items()}), file)
        return orders.path, file, [row[0] for row in rows]

    return write


def test_images_side_by_side_are_compared(change_file):
    """An update that gives the column its old value does not count; a null is a value."""
    rows = [
        (PRE, 1, "a"), (POST, 1, "b"),
        ("insert", 4, "x"),
        (PRE, 1, "a"), (POST, 2, "a"),
        (PRE, None, "a"), (POST, None, "c"),
        (PRE, None, "a"), (POST, 0, "a"),
    ]  # fmt: skip
    given = change_file(*rows)
    assert updates_that_change(*given, ["amount"]) == 2
    assert updates_that_change(*given, ["note"]) == 2
    assert updates_that_change(*given, ["amount", "note"]) == 4


@pytest.mark.parametrize(
    "kinds",
    [
        (PRE, POST, PRE, "insert", POST),
        (PRE, PRE, POST, POST),
        (POST, PRE, POST, PRE),
        (POST, POST),
        (PRE, "delete", POST),
    ],
)
def test_where_images_cant_be_paired_every_update_counts(change_file, kinds):
    """Swapped values look like none at all if rows are mixed up: rather wake once too often."""
    given = change_file(*[(kind, 1, "a") for kind in kinds])
    assert updates_that_change(*given, ["amount"]) == kinds.count(POST)


def test_a_column_that_the_file_does_not_have_counts_every_update(change_file):
    """It may have come later, or be nested."""
    given = change_file((PRE, 1, "a"), (POST, 1, "a"))
    assert updates_that_change(*given, ["other"]) == 1
