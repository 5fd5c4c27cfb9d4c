"""Sums over rows by which two sets of them are told apart, however they are ordered: for changes of which only some columns are read.

Decision 0256.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, FloatType, StructField

from headwater_spark.auto_cdc.on_driver.rows import is_atomic
from headwater_spark.plans.names import quoted
from headwater_spark.views.known_rows import SIGN

# Two hashes of 64 bits: each is seeded with another number.
_SEEDS = (1, 2)
_HALF = 32
_SUM = "__headwater_sum_"


def can_digest(fields: Sequence[StructField]) -> bool:
    """Whether the hashes of such columns' values differ where the values do: inside of others, a NULL leaves no trace in them."""
    return all(is_atomic(one.dataType) for one in fields)


def with_differences(
    signed: DataFrame, keys: Sequence[Column], fields: Sequence[StructField], *more: Column
) -> DataFrame:
    """The groups in which more rows came than went, or the reverse, of any set of equal values.

    Args:
        signed: rows that came (with a ``SIGN`` of 1) or went (-1).
        keys: what groups are made by.
        fields: the columns whose values are compared, beside those of the keys.
        more: other aggregates of the groups.
    """
    hashes = [F.xxhash64(F.lit(seed), *_parts(fields)) for seed in _SEEDS]
    # Whole hashes would overflow a sum.
    halves = [
        half for one in hashes for half in (F.shiftright(one, _HALF), one.bitwiseAND(F.lit((1 << _HALF) - 1)))
    ]
    sums = [F.sum(SIGN), *(F.sum(F.col(SIGN) * half) for half in halves)]
    named = [one.alias(f"{_SUM}{number}") for number, one in enumerate(sums)]
    differs = reduce(or_, (F.col(f"{_SUM}{number}") != 0 for number in range(len(sums))))
    return signed.groupBy(*keys).agg(*named, *more).where(differs)


def _parts(fields: Sequence[StructField]) -> list[Column]:
    parts = []
    for one in fields:
        value = F.col(quoted(one.name))
        # A hash passes over NULLs, and takes zero and minus zero for equal.
        parts += [
            value.isNull(),
            value.cast("string") if isinstance(one.dataType, FloatType | DoubleType) else value,
        ]
    return parts
