"""The last truncate of a target, remembered in its side table as the one row without a key."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from headwater_spark.auto_cdc.change_events import ChangeBatch
from headwater_spark.auto_cdc.literals import encoded, literal
from headwater_spark.plans.names import quoted


def last_truncate(batch: ChangeBatch, remembered: DataFrame | None, column: str) -> Column | None:
    """The sequence of the last truncate, None where neither this batch nor an earlier one had one.

    ``column``: where the side table has a row's sequence.
    """
    if batch.columns.truncate is None:
        return None
    kind = batch.columns.sequence_type
    sequences = [batch.cleared_at] if batch.cleared_at is not None else []
    if remembered is not None:
        row = remembered.where(has_no_key(batch.columns.keys)).agg(encoded(F.max(column), kind)).first()
        sequences += [literal(row[0], kind)] if row is not None and row[0] is not None else []
    return sequences[0] if len(sequences) == 1 else F.greatest(*sequences) if sequences else None


def truncate_row(spark: SparkSession, batch: ChangeBatch, values: Mapping[str, Column]) -> DataFrame:
    """The row without a key, with ``values``."""
    keys = [F.lit(None).cast(batch.columns.type_of(key)).alias(key) for key in batch.columns.keys]
    return spark.range(1).select(*keys, *(value.alias(name) for name, value in values.items()))


def has_no_key(keys: tuple[str, ...]) -> Column:
    """Whether a row of the side table has no key."""
    return reduce(Column.__and__, (F.col(quoted(key)).isNull() for key in keys))
