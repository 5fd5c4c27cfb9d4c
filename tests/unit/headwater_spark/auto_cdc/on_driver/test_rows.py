"""Which batches come to the driver, and which stay in Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import types as T

from headwater_spark.auto_cdc.on_driver import rows as module
from headwater_spark.auto_cdc.on_driver.rows import LOCAL_BYTES, LOCAL_ROWS, Rows, local_if_small


@pytest.mark.parametrize(
    ("count", "size", "kind", "local"),
    [
        (LOCAL_ROWS, LOCAL_BYTES, T.LongType(), True),
        (LOCAL_ROWS + 1, 1, T.LongType(), False),
        (1, LOCAL_BYTES + 1, T.LongType(), False),
        (1, 1, T.TimestampNTZType(), False),
        (0, 0, T.LongType(), True),
    ],
)
def test_small_batches(monkeypatch: pytest.MonkeyPatch, count: int, size: int, kind: T.DataType, local: bool):
    """Up to so many rows and bytes, of plain types; each other one says why it is not collected."""
    collected = Rows(None, "on the driver")  # type: ignore[arg-type]
    monkeypatch.setattr(module, "on_driver", lambda _: collected)
    plan = SimpleNamespace(stats=lambda: SimpleNamespace(sizeInBytes=lambda: size))
    query = SimpleNamespace(optimizedPlan=lambda: plan)
    frame: Any = SimpleNamespace(
        schema=T.StructType([T.StructField("v", kind)]), _jdf=SimpleNamespace(queryExecution=lambda: query)
    )
    rows = local_if_small(frame, count)
    assert (rows is collected) is local
    assert bool(rows.not_local) is not local
