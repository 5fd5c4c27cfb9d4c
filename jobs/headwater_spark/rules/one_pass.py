"""Judging a batch in the one pass that writes it: quarantined rows are collected with the counts.

An observation counts every row and its outcome, and also collects the rows to be quarantined, as many as the driver has room
for. Each row is evaluated once, so that even a query that is not repeatable gives it to only one of the two tables. With more
or larger rows the result is None, and the batch is judged from a cached copy.

Decision 0064.
"""

from __future__ import annotations

import dataclasses
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
from headwater_spark.rules.exact_counts import use_exact_counts
from headwater_spark.rules.expectations import COLUMN_PREFIX, Quality, any_broken
from headwater_spark.rules.judgement import fate_counts, own_columns, read_fates
from headwater_spark.rules.source_records import JSON_OPTIONS, SOURCE, as_text

# The row as JSON, of a row that is quarantined.
ROW_TEXT = f"{COLUMN_PREFIX}row"
# The largest rows, in characters of JSON, and the part of the driver's memory that collected rows may fill.
_ROOM = ((1_000, 8), (8_000, 16), (64_000, 16))
# A column for each: 1 where a quarantined row is of this size, else NULL.
_ROOMS = tuple(f"{COLUMN_PREFIX}room_{number}" for number in range(len(_ROOM)))
_MOST = 100_000  # what min_by takes
_ROWS_OF_A_TASK = 5_000
_PLAIN = (NumericType, StringType, BinaryType, BooleanType)
_TIMES = (DateType, TimestampType, TimestampNTZType)
# Times are converted through Java's old calendar, which lacks ten days of 1582.
_OLD = "1900-01-01"


def can_collect(schema: StructType, rules: Sequence[Expectation]) -> bool:
    """Whether rows with these columns can be collected unchanged, and judged one by one."""
    return all(rule.unique is None for rule in rules) and _comes_back(schema, outside=True)


def render(marked: DataFrame, rules: Sequence[Expectation]) -> DataFrame:
    """The marked rows with what the quarantine stores of those that it takes: the row and its record as JSON, each rendered once.

    In the query that marks them it costs the other rows nothing; after it, each row would be copied once more. What is
    rendered is not collected a second time as columns of the record.
    """
    if ROW_TEXT in marked.columns:
        return marked
    quarantined = any_broken(rules, ViolationAction.QUARANTINE)
    row = F.to_json(F.struct(*[F.col(quoted(name)) for name in own_columns(marked)]), JSON_OPTIONS)
    texts = {ROW_TEXT: F.when(quarantined, row)}
    size = F.length(F.col(ROW_TEXT))
    if SOURCE in marked.columns:
        texts[SOURCE] = F.when(quarantined, as_text(marked))
        size = size + F.coalesce(F.length(F.col(f"{SOURCE}.record")), F.lit(0))
    fits = ~_old(StructType([field for field in marked.schema.fields if field.name != SOURCE]))
    rendered = marked.withColumns(texts)
    smallest, rooms = 0, {}
    for name, (largest, _) in zip(_ROOMS, _ROOM, strict=True):
        rooms[name] = F.when(fits & (size > F.lit(smallest)) & (size <= F.lit(largest)), F.lit(1))
        smallest = largest
    return rendered.withColumns(rooms)


@dataclasses.dataclass(frozen=True)
class BatchObservation:
    """What is seen of a batch in the pass that writes it: the counts of its rows, and those for the quarantine.

    Two, since only counts are exact where a part of the pass runs again (decision 0215): rows that were then collected twice are more
    than were counted.
    """

    counts: Observation = dataclasses.field(default_factory=Observation)
    rows: Observation = dataclasses.field(default_factory=Observation)


def observe_rows(marked: DataFrame, rules: Sequence[Expectation], observation: BatchObservation) -> DataFrame:
    """The marked rows, observed; only the filter of the rows for the table may follow."""
    use_exact_counts(marked.sparkSession)
    rows = render(marked, rules)
    values = F.struct(*[F.col(quoted(name)) for name in rows.columns if name not in _ROOMS])
    collected: list[Column] = []
    for number, (name, (_, most)) in enumerate(zip(_ROOMS, _room(rows.sparkSession), strict=True)):
        # Of equal rows min_by takes the first ones, up to its limit.
        collected.append(F.min_by(values, F.col(name), most).alias(f"held_{number}"))
    # Counted last: that is part of the code that filters, where what collects takes rows as they come.
    return rows.observe(observation.rows, *collected).observe(observation.counts, *fate_counts(rules))


def read_observed(
    marked: DataFrame, rules: Sequence[Expectation], observation: BatchObservation
) -> tuple[Quality, DataFrame | None]:
    """The counts of the pass, and the rows for the quarantine; None where not all of them were collected.

    Args:
        marked: the observed rows; their pass is done.
    """
    session = marked.sparkSession
    jvm: Any = session._jvm  # noqa: SLF001 - rows are not to come to Python and back
    observed = observation.rows._jo.getAsJava()  # type: ignore[union-attr]  # noqa: SLF001
    rows = java_class(jvm, "java.util.ArrayList")()
    for number in range(len(_ROOM)):
        collected = observed.get(f"held_{number}")
        if collected is not None:
            rows.addAll(java_class(jvm, "scala.jdk.javaapi.CollectionConverters").asJava(collected))
    quality = read_fates(observation.counts.get, rules)
    if rows.size() != quality.quarantined:
        return quality, None
    schema = render(marked, rules).drop(*_ROOMS)._jdf.schema()  # noqa: SLF001
    # The optimiser would evaluate a local relation row by row on one thread, each time the write is planned.
    slices = max(1, min(session.sparkContext.defaultParallelism, rows.size() // _ROWS_OF_A_TASK))
    context = session.sparkContext._jsc  # noqa: SLF001
    frame = session._jsparkSession.createDataFrame(context.parallelize(rows, slices), schema)  # noqa: SLF001
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
