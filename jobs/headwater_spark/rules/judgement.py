"""Judging a batch that may go to two tables, or whose rows are compared with each other.

Where it can't be judged while it is written (``one_pass``), the frame after the fail filter, with marks for the rules, is cached
in memory; one aggregation over the marks counts all rules and every row's outcome, and both tables are written from the cache.
The cache is a barrier to the optimiser, as the observation of the plain path is: no later filter reaches the rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from operator import or_
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from headwater.definitions.expectation import (
    Expectation,
    UniqueWithin,
    ViolationAction,
)
from headwater.delta_log.table_history import table_exists
from headwater.storage.place import Place
from headwater_spark.plans.names import quoted
from headwater_spark.plans.schemas import orderable
from headwater_spark.rules.expectations import (
    COLUMN_PREFIX,
    Quality,
    RuleCounts,
    any_broken,
    broken,
    mark_conditions,
    unique_mark,
    violation_text,
)
from headwater_spark.rules.source_records import SOURCE

_PRESENT = f"{COLUMN_PREFIX}present"


def is_kept(rules: Sequence[Expectation]) -> Column:
    """Whether a judged row goes to the table."""
    return ~any_broken(rules, ViolationAction.QUARANTINE) & ~any_broken(rules, ViolationAction.DROP)


def broken_names(rules: Sequence[Expectation]) -> Column:
    """The names of the rules that a judged row breaks, of whatever kind."""
    names = [F.when(broken(rules, index), F.lit(rule.name)) for index, rule in enumerate(rules)]
    return F.array_compact(F.array(*names))


def kept_rows(judged: DataFrame, rules: Sequence[Expectation]) -> DataFrame:
    """The judged rows that go to the table."""
    return own_rows(judged.where(is_kept(rules)))


def own_rows(judged: DataFrame) -> DataFrame:
    """Judged rows without their marks."""
    return judged.select(*[_column(name) for name in own_columns(judged)])


def own_columns(judged: DataFrame) -> list[str]:
    """The columns of the row itself."""
    return [name for name in judged.columns if not name.startswith(COLUMN_PREFIX)]


def mark_rows(frame: DataFrame, rules: Sequence[Expectation]) -> DataFrame:
    """The frame with marks that say which conditions a row breaks; a row that breaks a fail rule raises.

    Nothing may filter it before it is cached or written: see the module. Only rows that may need it keep the source's record.
    """
    frame = mark_conditions(frame, rules)
    if SOURCE in frame.columns and all(rule.unique is None for rule in rules):
        quarantined = any_broken(rules, ViolationAction.QUARANTINE)
        frame = frame.withColumn(SOURCE, F.when(quarantined, F.col(SOURCE)))
    return frame


def compare_rows(marked: DataFrame, rules: Sequence[Expectation], table: Place | None = None) -> DataFrame:
    """The marked rows of a batch with a column for each key that must be unique.

    Args:
        table: where keys that must be unique within the table are looked up.
    """
    for index, rule in enumerate(rules):
        if rule.unique is not None:
            marked = _mark_repeated(marked, unique_mark(index), rule, table)
    return marked


@contextmanager
def judged_batch(
    marked: DataFrame, rules: Sequence[Expectation], table: Place | None = None
) -> Iterator[tuple[DataFrame, Quality]]:
    """A batch of marked rows, judged, counted, and cached in memory while the block runs.

    Raises:
        Spark's exception where a row breaks a rule of kind fail; ``find_violation`` reads it.
    """
    judged = compare_rows(marked, rules, table).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        quality = _count(judged, rules)
        _check_unique_fail(judged, rules, quality)
        yield judged, quality
    finally:
        judged.unpersist()


def fate_counts(rules: Sequence[Expectation]) -> list[Column]:
    """Counts of judged rows: all, by outcome, and by the rules that they break."""
    quarantined = any_broken(rules, ViolationAction.QUARANTINE)
    return [
        F.count(F.lit(1)).alias("rows"),
        F.count_if(~quarantined & any_broken(rules, ViolationAction.DROP)).alias("dropped"),
        F.count_if(quarantined).alias("quarantined"),
        *[F.count_if(broken(rules, index)).alias(f"rule_{index}") for index in range(len(rules))],
    ]


def read_fates(counts: Any, rules: Sequence[Expectation]) -> Quality:
    """The quality from the counts; ``counts`` has them by name."""
    rows, dropped, quarantined = (int(counts.get(name) or 0) for name in ("rows", "dropped", "quarantined"))
    failed = [int(counts.get(f"rule_{index}") or 0) for index in range(len(rules))]
    named = tuple(RuleCounts(rule.name, rows - bad, bad) for rule, bad in zip(rules, failed, strict=True))
    return Quality(rows, dropped, named, quarantined)


def _count(judged: DataFrame, rules: Sequence[Expectation]) -> Quality:
    return read_fates(judged.agg(*fate_counts(rules)).collect()[0].asDict(), rules)


def _check_unique_fail(judged: DataFrame, rules: Sequence[Expectation], quality: Quality) -> None:
    failing = [
        index
        for index, rule in enumerate(rules)
        if rule.unique is not None and rule.action is ViolationAction.FAIL and quality.rules[index].failed
    ]
    if failing:
        names = F.array_compact(F.array(*[F.when(broken(rules, i), F.lit(rules[i].name)) for i in failing]))
        columns = [*own_columns(judged), *([SOURCE] if SOURCE in judged.columns else [])]
        bad = judged.where(reduce(or_, [broken(rules, i) for i in failing])).limit(1)
        bad.select(F.raise_error(violation_text(names, columns))).collect()


def _mark_repeated(rows: DataFrame, mark: str, rule: Expectation, table: Place | None) -> DataFrame:
    """Mark each row whose key occurred before. The first one is the first in its source, else the least row: replays agree."""
    assert rule.unique is not None
    types = {field.name: field.dataType for field in rows.schema.fields}
    by_name = {name.lower(): name for name in types}
    keys = [_column(by_name[key.lower()]) for key in rule.unique.columns]
    order = (
        [F.col(f"{SOURCE}.{part}") for part in ("topic", "partition", "offset")] if SOURCE in types else []
    )
    order += [_column(name) for name in own_columns(rows) if orderable(types[name])]
    complete = reduce(lambda one, key: one & key.isNotNull(), keys, F.lit(True))
    before = F.row_number().over(Window.partitionBy(*keys).orderBy(*order)) > 1
    if rule.unique.within is not UniqueWithin.TABLE or table is None or not table_exists(table):
        return rows.withColumn(mark, complete & before)
    names = [f"{COLUMN_PREFIX}key_{number}" for number in range(len(keys))]
    stored = rows.sparkSession.read.format("delta").load(str(table)).select(
        *[_column(key).alias(name) for key, name in zip(rule.unique.columns, names, strict=True)]
    )  # fmt: skip
    stored = stored.distinct().withColumn(_PRESENT, F.lit(True))
    same = reduce(
        lambda one, pair: one & (pair[0] == F.col(pair[1])), zip(keys, names, strict=True), F.lit(True)
    )
    joined = rows.withColumn(mark, before).join(stored, same, "left")
    return joined.withColumn(mark, complete & (F.col(mark) | F.col(_PRESENT).isNotNull())).drop(
        _PRESENT, *names
    )


def _column(name: str) -> Column:
    return F.col(quoted(name))
