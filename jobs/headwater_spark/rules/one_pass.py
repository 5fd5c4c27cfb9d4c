"""Judging a batch in the one pass that writes it: quarantined rows are collected with the counts.

An observation counts every row and its outcome, and also collects the rows to be quarantined, as many as the driver has room
for. Each row is evaluated once, so that even a query that is not repeatable gives it to only one of the two tables. With more
or larger rows the result is None, and the batch is judged from a cached copy.

Decision 0064.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    MapType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from headwater.definitions.expectation import Expectation, ViolationAction
from headwater_spark.java_classes import java_class
from headwater_spark.plans.names import quoted
from headwater_spark.rules.expectations import COLUMN_PREFIX, Quality, any_broken
from headwater_spark.rules.judgement import fate_counts, read_fates

_SIZE = f"{COLUMN_PREFIX}size"
# The largest rows, in characters of JSON, and the part of the driver's memory that collected rows may fill.
_ROOM = ((1_000, 8), (8_000, 16), (64_000, 16))
_MOST = 100_000  # what min_by takes
_ROWS_OF_A_TASK = 5_000
_PLAIN = (NumericType, StringType, BinaryType, BooleanType)
_TIMES = (DateType, TimestampType, TimestampNTZType)
# Times are converted through Java's old calendar, which lacks ten days of 1582.
_OLD = "1900-01-01"


def can_collect(schema: StructType, rules: Sequence[Expectation]) -> bool:
    """Whether rows with these columns can be collected unchanged, and judged one by one."""
    return all(rule.unique is None for rule in rules) and _comes_back(schema, outside=True)


def observe_rows(marked: DataFrame, rules: Sequence[Expectation], observation: Observation) -> DataFrame:
    """The marked rows, observed; only the filter of the rows for the table may follow."""
    quarantined = any_broken(rules, ViolationAction.QUARANTINE)
    columns = [F.col(quoted(name)) for name in marked.columns]
    size = F.when(quarantined & ~_old(marked.schema), F.length(F.to_json(F.struct(*columns))))
    session = marked.sparkSession
    smallest = 0
    collected: list[Column] = []
    for number, (largest, most) in enumerate(_room(session)):
        mine = F.when((F.col(_SIZE) > smallest) & (F.col(_SIZE) <= largest), F.lit(1))
        # Of equal rows min_by takes the first ones, up to its limit.
        collected.append(F.min_by(F.struct(*columns), mine, most).alias(f"held_{number}"))
        smallest = largest
    return marked.withColumn(_SIZE, size).observe(observation, *fate_counts(rules), *collected).drop(_SIZE)


def read_observed(
    marked: DataFrame, rules: Sequence[Expectation], observation: Observation
) -> tuple[Quality, DataFrame | None]:
    """The counts of the pass, and the rows for the quarantine; None where not all of them were collected.

    Args:
        marked: the observed rows; their pass is done.
    """
    session = marked.sparkSession
    jvm: Any = session._jvm  # noqa: SLF001 - rows are not to come to Python and back
    observed = observation._jo.getAsJava()  # type: ignore[union-attr]  # noqa: SLF001
    rows = java_class(jvm, "java.util.ArrayList")()
    for number in range(len(_ROOM)):
        collected = observed.get(f"held_{number}")
        if collected is not None:
            rows.addAll(java_class(jvm, "scala.jdk.javaapi.CollectionConverters").asJava(collected))
    quality = read_fates(observed, rules)
    if rows.size() != quality.quarantined:
        return quality, None
    # The optimiser would evaluate a local relation row by row on one thread, each time the write is planned.
    slices = max(1, min(session.sparkContext.defaultParallelism, rows.size() // _ROWS_OF_A_TASK))
    context = session.sparkContext._jsc  # noqa: SLF001
    frame = session._jsparkSession.createDataFrame(context.parallelize(rows, slices), marked._jdf.schema())  # noqa: SLF001
    return quality, DataFrame(frame, session)


def _room(session: SparkSession) -> list[tuple[int, int]]:
    """For each size of rows, how many are collected at most."""
    jvm: Any = session._jvm  # noqa: SLF001
    memory = int(java_class(jvm, "java.lang.Runtime").getRuntime().maxMemory())
    tasks = max(1, session.sparkContext.defaultParallelism)
    return [(size, max(1, min(_MOST, memory // part // tasks // size))) for size, part in _ROOM]


def _comes_back(kind: DataType, *, outside: bool) -> bool:
    """``outside``: of arrays and maps, in which times are not checked."""
    if isinstance(kind, StructType):
        return all(_comes_back(field.dataType, outside=outside) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _comes_back(kind.elementType, outside=False)
    if isinstance(kind, MapType):
        return _comes_back(kind.keyType, outside=False) and _comes_back(kind.valueType, outside=False)
    return isinstance(kind, _PLAIN) or (outside and isinstance(kind, _TIMES))


def _old(schema: StructType, within: Column | None = None) -> Column:
    """Whether a row has a time before Java's calendar change."""
    old = F.lit(False)
    for field in schema.fields:
        value = F.col(quoted(field.name)) if within is None else within.getField(field.name)
        if isinstance(field.dataType, StructType):
            old = old | _old(field.dataType, value)
        elif isinstance(field.dataType, _TIMES):
            old = old | F.coalesce(value < F.lit(_OLD).cast(field.dataType), F.lit(False))
    return old
