"""A write names the table's partition columns where its rows bring them all."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headwater_spark.delta_writes.partitions import named_partitions


@pytest.mark.parametrize(
    ("columns", "declared", "named"),
    [
        (["id", "day"], ("day",), ("day",)),
        (["id", "Day"], ("day",), ("day",)),
        (["id", "day"], (), ()),
        (["id"], ("day",), ()),
        (["id", "country"], ("country", "day"), ()),
    ],
)
def test_all_or_none(columns: list[str], declared: tuple[str, ...], named: tuple[str, ...]):
    """Names have no case; where the rows lack one, no column is named: a part of them would be another partitioning."""
    rows: Any = SimpleNamespace(columns=columns)
    assert named_partitions(rows, declared) == named
