"""Which partition columns a write names."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame


def named_partitions(rows: DataFrame, partition_columns: Sequence[str]) -> tuple[str, ...]:
    """The partition columns to name to Spark's writer: all, or none where the rows lack one.

    Spark refuses the name of a column that the rows do not bring: one that Delta computes (``GENERATED ALWAYS AS``), or one
    that only another flow of the table returns. Such a table was created before its first write and knows its partitions.

    Args:
        rows: what is written.
        partition_columns: as the dataset declares them; names of columns have no case.
    """
    if not partition_columns:
        return ()
    brought = {name.lower() for name in rows.columns}
    return tuple(partition_columns) if all(name.lower() in brought for name in partition_columns) else ()
