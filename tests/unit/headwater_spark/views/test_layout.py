"""By which column the rows of a recomputed view are sorted into its files."""

from __future__ import annotations

import pytest
from tests.unit.headwater_spark.views import plans as p

from headwater_spark.views.layout import ROWS_PER_FILE, Layout, sorting_column, view_layout
from headwater_spark.views.plan_description import Node

SALES = p.leaf(1, 2, 3)
WINDOWS = p.window(SALES, 2, 90)
NAMES = ["id", "day", "qty", "n"]
TYPES = ["bigint", "date", "int", "bigint"]


def column(query: Node, sizes: dict[int, int] | None = None, chosen: tuple[str, ...] = ()) -> str | None:
    root = p.numbered(query)
    known = {leaf.number: 10 for leaf in root.leaves}
    if sizes is not None:
        known = {leaf.number: sizes[place] for place, leaf in enumerate(root.leaves) if place in sizes}
    return sorting_column(root, TYPES, NAMES, known, chosen)


def test_windows_and_groups_are_sorted_by_what_changes_are_followed_by():
    """The key by which the part of a later change is named."""
    assert column(WINDOWS) == "day"


@pytest.mark.parametrize(
    "query", [SALES, p.project(SALES, p.column(1), p.column(2), p.column(3), p.named(p.column(3), 9))]
)
def test_rows_that_come_as_their_source_has_them_stay_so(query: Node):
    """No shuffle has spread them."""
    assert column(query) is None


def test_what_is_declared_decides():
    """Partitions and clusters are the user's, and so is an order; a query over no table has nothing to follow."""
    assert column(WINDOWS, chosen=("qty",)) is None
    assert column(Node("Sort", 0, {}, (WINDOWS,))) is None
    assert column(WINDOWS, sizes={}) is None


def layout(query: Node, size: int = 10, chosen: tuple[str, ...] = ()) -> Layout:
    root = p.numbered(query)
    return view_layout(root, TYPES, NAMES, {leaf.number: size for leaf in root.leaves}, chosen)


def test_what_lies_together_in_a_source_stays_together():
    """Rows that come one by one are cut into files, larger ones of larger sources; groups are sorted; the rest is the user's."""
    assert layout(SALES) == Layout(None, ROWS_PER_FILE)
    assert layout(SALES, 1_000_000_000) == Layout(None, 1_000_000)
    assert layout(WINDOWS) == Layout("day", ROWS_PER_FILE)
    for own in (
        layout(SALES, chosen=("qty",)),
        layout(Node("Repartition", 0, {}, (SALES,))),
        layout(Node("Sort", 0, {}, (WINDOWS,))),
    ):
        assert own == Layout()
