"""Rows that give way to newer ones: whatever order and cut they arrive in, the newest of each key stay."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.sql import types as T
from tests.unit.headwater_spark.plain_columns import Row
from tests.unit.headwater_spark.plain_merge import PlainTable
from tests.unit.headwater_spark.plain_rows import Frame, plain_functions
from tests.unit.headwater_spark.recorded_writes import Conf

from headwater.definitions.flow import Replacement
from headwater_spark.delta_writes import delta_merge, delta_replace
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.delta_writes.delta_replace import DeltaReplace

SCHEMA = T.StructType([T.StructField(name, T.LongType()) for name in ("key", "at", "v")])
ROW = st.tuples(
    st.one_of(st.none(), st.integers(1, 2)), st.one_of(st.none(), st.integers(1, 3)), st.integers(1, 3)
)


def replaced(batches: list[list[tuple[int | None, ...]]]) -> list[tuple[int | None, ...]]:
    """The rows of a table after these batches."""
    session = SimpleNamespace(conf=Conf())
    table = PlainTable(SCHEMA, session=session)
    with pytest.MonkeyPatch.context() as patch:
        plain_functions(patch, delta_merge, delta_replace)
        patch.setattr(delta_replace, "DeltaTable", SimpleNamespace(forPath=lambda *_: table))
        target = DeltaReplace(Path("t"), Replacement(("key",), "at"))
        for number, batch in enumerate(batches):
            rows: list[Row] = [dict(zip(SCHEMA.names, row, strict=True)) for row in batch]
            frame: Any = Frame(rows, SCHEMA.names, session=session)
            target.write(frame, BatchTransaction("p.f@0", number, "{}"))
    assert table.transactions == [("p.f@0", number) for number in range(len(batches))]
    return [tuple(row.values()) for row in table.rows]


@given(batches=st.lists(st.lists(ROW, max_size=4), min_size=1, max_size=3))
@example(batches=[[(1, None, 1)], [(1, None, 2), (None, 1, 1)], [(1, 1, 3), (None, None, 2)]])
@example(batches=[[(1, 2, 1), (1, 2, 2), (1, 1, 9)], [(1, 1, 3), (1, 2, 3)]])
def test_the_newest_rows_of_each_key(batches: list[list[tuple[int | None, ...]]]):
    """All rows with the highest sequence that ever arrived for a key, and no other; NULL is the lowest, and a key as any."""
    sent = [row for batch in batches for row in batch]
    newest = {key: max((row[1] or 0) for row in sent if row[0] == key) for key, *_ in sent}
    wanted = [row for row in sent if (row[1] or 0) == newest[row[0]]]
    assert sorted(map(repr, replaced(batches))) == sorted(map(repr, wanted))
