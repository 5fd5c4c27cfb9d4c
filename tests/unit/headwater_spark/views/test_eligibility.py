"""Groups are merged by what came only where that gives the values that the whole query would give."""

from __future__ import annotations

import pytest

from headwater_spark.views.appended_rows import Grouped, Merging
from headwater_spark.views.eligibility import mergeable
from headwater_spark.views.recipes import Leaf, Rows

RECIPE = Leaf(0, Rows.CHANGED)
EXACT = [
    (Merging.COUNT, "bigint"),
    (Merging.SUM, "bigint"),
    (Merging.SUM, "decimal(22,2)"),
    (Merging.LEAST, "date"),
    (Merging.GREATEST, "timestamp"),
    (Merging.KEY, "string"),
]
# A sum of floating point numbers depends on their order; texts of others are no keys.
INEXACT = [
    (Merging.SUM, "double"),
    (Merging.SUM, "float"),
    (Merging.SUM, "interval day"),
    (Merging.KEY, "double"),
    (Merging.LEAST, "double"),
    (Merging.GREATEST, "array<int>"),
]


@pytest.mark.parametrize(("how", "kind"), EXACT)
def test_what_is_exact(how: Merging, kind: str):
    """Counts, sums of whole and decimal numbers, least and greatest values of types that Spark compares by their texts."""
    assert mergeable(Grouped(RECIPE, (Merging.KEY, how)), ["int", kind])


@pytest.mark.parametrize(("how", "kind"), INEXACT)
def test_what_is_not(how: Merging, kind: str):
    """One column that is not exact is enough: the groups are computed again."""
    assert not mergeable(Grouped(RECIPE, (Merging.KEY, Merging.COUNT, how)), ["int", "bigint", kind])
