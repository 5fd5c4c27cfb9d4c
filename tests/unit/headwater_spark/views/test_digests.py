"""Sums by which sets of rows are told apart."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import types as T
from tests.unit.headwater_spark.plain_columns import col
from tests.unit.headwater_spark.plain_rows import Frame, plain_functions

from headwater_spark.views import digests
from headwater_spark.views.digests import can_digest, with_differences
from headwater_spark.views.known_rows import SIGN

FIELDS = [T.StructField(name, T.LongType()) for name in ("b", "c")]


def differing(
    monkeypatch: pytest.MonkeyPatch, came: list[tuple[Any, ...]], went: list[tuple[Any, ...]]
) -> list[Any]:
    """The groups, by the first column, in which what came is not what went."""
    plain_functions(monkeypatch, digests)
    rows = [
        dict(zip(("a", "b", "c", SIGN), (*row, sign), strict=True))
        for sign, rows in ((1, came), (-1, went))
        for row in rows
    ]
    made: Any = with_differences(Frame(rows, ("a", "b", "c", SIGN)), [col("a")], FIELDS)  # type: ignore[arg-type,list-item]
    return [row["a"] for row in made.rows]


@pytest.mark.parametrize(
    ("came", "went", "differ"),
    [
        ([(1, 1, 2), (2, 3, 4)], [(2, 3, 4), (1, 1, 2)], []),
        ([(1, None, 2)], [(1, 2, None)], [1]),
        ([(1, None, None)], [], [1]),
        ([(1, 1, 1), (1, 1, 1)], [(1, 1, 1)], [1]),
        ([(1, 1, 1), (1, 1, 1)], [(1, 2, 2), (1, 2, 2)], [1]),
        ([(1, 1, 2), (1, 3, 4)], [(1, 1, 4), (1, 3, 2)], [1]),
        ([(1, 1, 1)], [(2, 1, 1)], [1, 2]),
        ([(None, 1, 1)], [(None, 1, 2)], [None]),
    ],
)  # fmt: skip
def test_groups_that_differ(monkeypatch: pytest.MonkeyPatch, came: Any, went: Any, differ: list[Any]):
    """Rows in another order are the same; a NULL that has moved, a row that came once more, and values that were exchanged are not."""
    assert differing(monkeypatch, came, went) == differ


def test_columns_of_which_digests_can_be_made():
    """Plain ones; not those that hold other values, whose NULLs would leave no trace."""
    assert can_digest(FIELDS)
    assert can_digest([T.StructField("d", T.DoubleType()), T.StructField("e", T.StringType())])
    assert not can_digest([*FIELDS, T.StructField("d", T.ArrayType(T.LongType()))])
