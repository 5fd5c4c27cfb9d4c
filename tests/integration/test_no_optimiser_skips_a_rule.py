"""Judging a batch: what is counted, who is kept out, and that no optimiser skips a rule."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headwater.definitions.expectation import Expectation, UniqueKey, UniqueWithin, ViolationAction
from headwater_spark.execution.failures import cause_messages
from headwater_spark.messages.exception_text import causes_of
from headwater_spark.rules.expectations import Quality, RuleCounts, find_violation
from headwater_spark.rules.judgement import (
    broken_names,
    is_kept,
    judged_batch,
    kept_rows,
    mark_rows,
    own_columns,
)

pytestmark = pytest.mark.usefixtures("adaptive")

# Quick where a session is there: they run each time.

WARN, DROP = ViolationAction.WARN, ViolationAction.DROP
QUARANTINE, FAIL = ViolationAction.QUARANTINE, ViolationAction.FAIL
ROWS = [(1, 10, 30), (None, 10, 30), (3, -1, 30), (None, -1, 10), (5, None, 10), (6, 5, 17)]


@pytest.fixture
def frame(spark: SparkSession) -> DataFrame:
    """Six rows: two without id, two without a positive amount, three under age."""
    return spark.createDataFrame(ROWS, "id INT, amount INT, age INT")


def rule(name: str, constraint: str, action: ViolationAction) -> Expectation:
    """A condition."""
    return Expectation(name, constraint, action)


def unique(action: ViolationAction, *columns: str, within: UniqueWithin = UniqueWithin.BATCH) -> Expectation:
    """A key that may be there once."""
    return Expectation("once", "", action, unique=UniqueKey(columns, within))


def test_every_row_has_one_fate(frame: DataFrame):
    """Quarantine wins over drop; each rule counts all rows; all names are told; NULL passes."""
    rules = [
        rule("valid_id", "id IS NOT NULL", DROP),
        rule("pos", "amount > 0", QUARANTINE),
        rule("adult", "age >= 18", WARN),
    ]
    with judged_batch(mark_rows(frame, rules), rules) as (judged, quality):
        counts = (RuleCounts("valid_id", 4, 2), RuleCounts("pos", 4, 2), RuleCounts("adult", 3, 3))
        assert quality == Quality(6, 1, counts, 2)
        assert quality.accepted == 3
        assert own_columns(judged) == ["id", "amount", "age"]
        assert [row.id for row in judged.where(is_kept(rules)).collect()] == [1, 5, 6]
        names = {
            tuple(row[:3]): row[3]
            for row in judged.select("id", "amount", "age", broken_names(rules)).collect()
        }
        assert names[None, -1, 10] == ["valid_id", "pos", "adult"]


def test_a_fail_rule_sees_what_others_keep_out(spark: SparkSession, tmp_path: Path):
    """Rules over one column of files: the filters that split the batch are not merged into the one that raises."""
    spark.createDataFrame([(1, 10), (9, 90)], "id INT, amount INT").write.parquet(str(tmp_path / "rows"))
    frame = spark.read.parquet(str(tmp_path / "rows"))
    rules = [rule("small", "id < 5", FAIL), rule("tiny", "id < 3", QUARANTINE), rule("less", "id < 4", DROP)]
    with pytest.raises(PySparkException) as caught, judged_batch(mark_rows(frame, rules), rules):
        pass
    violation = find_violation(causes_of(cause_messages(caught.value)))
    assert violation is not None
    assert violation.rules == ("small",)


def test_a_rule_that_gives_something_else_each_time(spark: SparkSession):
    """Each row is judged once: what is counted is what is kept out, though the rule throws dice."""
    rules = [rule("dice", "rand() < 0.5", QUARANTINE)]
    with judged_batch(mark_rows(spark.range(1000).toDF("id"), rules), rules) as (judged, quality):
        assert judged.where(is_kept(rules)).count() == quality.accepted
        assert judged.where(~is_kept(rules)).count() == quality.quarantined


def test_columns_with_odd_names(spark: SparkSession):
    """Dots, spaces and backticks in the names of columns reach the rules and the table."""
    frame = spark.createDataFrame([(1, -1), (2, 3), (-3, 3)], "`e``f` INT, `a.b c` INT")
    rules = [
        Expectation("dotted", "`a.b c` > 0", QUARANTINE),
        Expectation("ticked", "`e``f` > 0", DROP),
    ]
    with judged_batch(mark_rows(frame, rules), rules) as (judged, quality):
        accepted = kept_rows(judged, rules)
        assert (accepted.columns, [tuple(row) for row in accepted.collect()]) == (frame.columns, [(2, 3)])
    assert (quality.quarantined, quality.dropped) == (1, 1)


def test_keys_of_a_batch(spark: SparkSession):
    """The least row of a key stays, whatever the order; keys with NULL pass; letter case does not tell columns apart."""
    rows = [(1, "b"), (1, "a"), (None, "x"), (None, "x"), (2, "c")]
    rules = [unique(DROP, "ID")]
    for order in (rows, rows[::-1]):
        with judged_batch(mark_rows(spark.createDataFrame(order, "id INT, v STRING"), rules), rules) as (
            judged,
            quality,
        ):
            accepted = sorted(tuple(row)[:2] for row in judged.where(is_kept(rules)).collect() if row.id)
            assert accepted == [(1, "a"), (2, "c")]
            assert quality.dropped == 1


def test_keys_of_a_table(spark: SparkSession, tmp_path: Path):
    """A key that the table has is broken, however often the batch has it; without a table only the batch counts."""
    batch = spark.createDataFrame([(1, 1), (2, 2), (2, 3), (None, 4)], "id INT, v INT")
    rules = [unique(QUARANTINE, "id", within=UniqueWithin.TABLE)]
    table = tmp_path / "t"
    with judged_batch(mark_rows(batch, rules), rules, table) as (_, quality):
        assert quality.quarantined == 1
    spark.createDataFrame([(1, "x"), (1, "y"), (None, "z")], "id INT, other STRING").write.format(
        "delta"
    ).save(str(table))
    with judged_batch(mark_rows(batch, rules), rules, table) as (judged, quality):
        assert quality == Quality(4, 0, (RuleCounts("once", 2, 2),), 2)
        assert sorted(row.v for row in judged.where(is_kept(rules)).collect()) == [2, 4]


def test_a_key_that_fails(spark: SparkSession):
    """The violation names the rule and one of the rows that came too late."""
    rules = [unique(FAIL, "id")]
    frame = spark.range(3).select((F.col("id") % 2).alias("id"), F.col("id").alias("v"))
    with pytest.raises(PySparkException) as caught, judged_batch(mark_rows(frame, rules), rules):
        pass
    violation = find_violation(causes_of(cause_messages(caught.value)))
    assert violation is not None
    assert (violation.rules, violation.record, violation.input) == (("once",), '{"id": 0, "v": 2}', None)
