"""Sums that may be NULL since they were too large are not added to."""

from __future__ import annotations

from tests.unit.headwater_spark.views import plans as p

from headwater_spark.views.appended_rows import grouped
from headwater_spark.views.eligibility import traced
from headwater_spark.views.lossy_sums import with_lossy_sums

SALES = p.leaf(1, 2, 3)


def summed(kind: str) -> p.Node:
    """An aggregation by the first column."""
    return p.numbered(p.group(SALES, (1,), p.column(1), p.named(p.aggregate(kind, 3), 90)))


def test_groups_with_lossy_sums_are_computed_anew() -> None:
    """They are followed by their keys, as any group is, and are not merged; what has no sum is as it was."""
    assert grouped(summed("Sum"), summed("Sum").leaves[0].number) is not None
    lossy = with_lossy_sums(summed("Sum"))
    leaf = lossy.leaves[0].number
    assert grouped(lossy, leaf) is None
    assert traced(lossy, leaf, 0)
    assert grouped(with_lossy_sums(summed("Max")), leaf) is not None
