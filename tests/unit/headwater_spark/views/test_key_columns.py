"""Which columns name the changed part of a view."""

from __future__ import annotations

import pytest
from tests.unit.headwater_spark.views import plans as p

from headwater_spark.views.key_columns import KeyColumns
from headwater_spark.views.plan_description import Node
from headwater_spark.views.recipes import rows_read

SALES, STORES = p.leaf(1, 2, 3), p.leaf(11, 12)
JOINED = p.join(SALES, STORES, "Inner", p.equal(2, 11))
TYPES = ["bigint", "date", "double", "bigint", "string"]
NAMES = ["id", "day", "price", "store", "region"]


def keys(
    query: Node, changed: tuple[int, ...] = (0,), types: list[str] = TYPES, **layout: set[str]
) -> KeyColumns:
    """The columns of a query whose leaves at these places changed."""
    root = p.numbered(query)
    return KeyColumns(root, [root.leaves[place].number for place in changed], types, NAMES, **layout)


def test_dates_come_first_and_nothing_more_is_read_for_others():
    """A float is no key. Columns of the other side would have that side read, unless they are equal to one of this side."""
    found = keys(JOINED)
    assert found.possible() == [0, 1, 3, 4]
    assert found.chosen() == [1, 0, 3]
    assert [rows_read(answer.recipe) for answer in found.traced([1, 3])] == [0]
    assert [rows_read(answer.recipe) for answer in found.traced([1, 4])] == [1]


@pytest.mark.parametrize(
    ("layout", "chosen"),
    [
        ({"partitions": {"region"}}, [4]),
        ({"partitions": {"region", "store"}}, [3]),
        ({"sorted_by": {"id"}}, [0, 1, 3]),
        ({"partitions": {"price"}}, [1, 0, 3]),
    ],
)
def test_how_files_lie_comes_before(layout: dict[str, set[str]], chosen: list[int]):
    """Partitions of the view above all, by which whole partitions are replaced; what its files are sorted by; as far as they are keys."""
    assert keys(JOINED, **layout).chosen() == chosen


def test_columns_that_can_only_be_followed_alone():
    """Each column of a join of groups is followed by itself, both together are not: one is enough."""
    grouped = p.project(p.window(p.window(SALES, 1, 90), 1, 91), p.column(1), p.column(2))
    assert keys(grouped, types=["bigint", "date"]).chosen() == [0]
    assert keys(p.group(SALES, (), p.named(p.aggregate("Sum", 3), 90)), types=["bigint"]).possible() == []
    assert keys(JOINED, changed=(0, 1)).traced([0, 4]) != []
