from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql.classic.dataframe import DataFrame


@contextmanager
def bounded_deduplication() -> Iterator[None]:
    """Let ``dropDuplicatesWithinWatermark`` mean ``dropDuplicates`` on batches, where Spark refuses it.

    With all rows available, no row is too late to be compared.
    """
    spark = DataFrame.dropDuplicatesWithinWatermark

    def deduplicated(frame: Any, subset: Any = None) -> Any:
        return spark(frame, subset) if frame.isStreaming else frame.dropDuplicates(subset)

    DataFrame.dropDuplicatesWithinWatermark = deduplicated  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        DataFrame.dropDuplicatesWithinWatermark = spark  # type: ignore[method-assign]
