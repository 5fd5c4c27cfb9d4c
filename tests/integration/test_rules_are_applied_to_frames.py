"""Expectations on frames: what is counted, dropped, failed, and which constraints are refused."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession

from headwater.definitions.expectation import Expectation, ViolationAction
from headwater.errors import InvalidExpectation
from headwater_spark.execution.failures import cause_messages
from headwater_spark.messages.exception_text import causes_of
from headwater_spark.rules.expectations import (
    Quality,
    RuleCounts,
    apply_expectations,
    check_expectations,
    find_violation,
    read_quality,
)

pytestmark = pytest.mark.usefixtures("adaptive")

# Quick where a session is there: they run each time.

WARN, DROP, FAIL = ViolationAction.WARN, ViolationAction.DROP, ViolationAction.FAIL
ROWS = [(1, 10, 30), (None, 10, 30), (3, -1, 30), (None, -1, 10), (5, None, 10), (6, 5, 17)]


@pytest.fixture
def frame(spark: SparkSession) -> DataFrame:
    """Six rows: two without id, two without a positive amount, three under age."""
    return spark.createDataFrame(ROWS, "id INT, amount INT, age INT")


def rules(*given: tuple[str, str, ViolationAction]) -> list[Expectation]:
    """Rules from triples."""
    return [Expectation(name, constraint, action) for name, constraint, action in given]


def checked(frame: DataFrame, given: list[Expectation]) -> tuple[list[Any], Quality]:
    """The rows that are written, and what the rules counted."""
    observation = Observation()
    written = [row[0] for row in apply_expectations(frame, given, observation).collect()]
    return written, read_quality(observation.get, given)


def test_the_worked_example(frame: DataFrame):
    """Every rule counts over all rows that came in; a row that breaks two drop rules is dropped once; NULL passes."""
    given = rules(
        ("valid_id", "id IS NOT NULL", DROP), ("pos", "amount > 0", DROP), ("adult", "age >= 18", WARN)
    )
    written, quality = checked(frame, given)
    assert written == [1, 5, 6]
    assert quality == Quality(
        rows=6,
        dropped=3,
        rules=(RuleCounts("valid_id", 4, 2), RuleCounts("pos", 4, 2), RuleCounts("adult", 3, 3)),
    )


def test_warnings_write_everything(frame: DataFrame):
    """A rule of kind warn drops nothing."""
    written, quality = checked(frame, rules(("pos", "amount > 0", WARN)))
    assert len(written) == 6
    assert (quality.dropped, quality.rules) == (0, (RuleCounts("pos", 4, 2),))


@pytest.mark.parametrize("action", [WARN, DROP, FAIL])
def test_null_passes(frame: DataFrame, action: ViolationAction):
    """A condition that is NULL is not broken, whatever the kind of its rule."""
    written, quality = checked(frame, rules(("null", "CAST(NULL AS BOOLEAN)", action)))
    assert len(written) == 6
    assert quality.rules == (RuleCounts("null", 6, 0),)


def violation_of(frame: DataFrame) -> tuple[tuple[str, ...], str]:
    """The rules and the record that a failing query tells."""
    with pytest.raises(PySparkException) as caught:
        frame.collect()
    violation = find_violation(causes_of(cause_messages(caught.value)))
    assert violation is not None
    return violation.rules, violation.record


def test_a_violation_names_every_rule_and_the_row(frame: DataFrame):
    """A row that breaks two fail rules names both; the record is the whole row."""
    given = rules(
        ("valid_id", "id IS NOT NULL", FAIL), ("pos", "amount > 0", FAIL), ("adult", "age >= 18", WARN)
    )
    broken, record = violation_of(
        apply_expectations(frame.where("age = 10 and amount = -1"), given, Observation())
    )
    assert broken == ("valid_id", "pos")
    assert '"amount": -1' in record


def test_a_fail_rule_sees_rows_that_a_drop_rule_takes_out(spark: SparkSession, tmp_path):
    """The optimiser must not drop the bad row before the fail rule has seen it: drop filters are a barrier below.

    The rules look at one column, over files: a later filter on it would be merged and pushed to the scan.
    """
    spark.createDataFrame([(1, 10), (9, 90)], "id INT, amount INT").write.parquet(str(tmp_path / "rows"))
    frame = spark.read.parquet(str(tmp_path / "rows"))
    given = rules(("small", "id < 5", FAIL), ("tiny", "id < 3", DROP))
    assert violation_of(apply_expectations(frame, given, Observation()))[0] == ("small",)


def test_a_fail_rule_over_a_column_that_nobody_reads(spark: SparkSession, tmp_path):
    """A rule over a column that is not selected afterwards is checked all the same, also under a filter."""
    spark.createDataFrame([(1, 10), (9, -1)], "id INT, amount INT").write.parquet(str(tmp_path / "rows"))
    frame = spark.read.parquet(str(tmp_path / "rows"))
    applied = apply_expectations(frame, rules(("pos", "amount > 0", FAIL)), Observation())
    assert violation_of(applied.select("id"))[0] == ("pos",)
    assert violation_of(applied.select("id").where("id < 3"))[0] == ("pos",)


def test_counts_do_not_depend_on_what_is_read_later(frame: DataFrame):
    """The observation counts all rows, whatever is selected or filtered after it."""
    given = rules(("pos", "amount > 0", WARN))
    observation = Observation()
    assert apply_expectations(frame, given, observation).where("id = 1").select("id").count() == 1
    assert read_quality(observation.get, given) == Quality(6, 0, (RuleCounts("pos", 4, 2),))


def test_a_rule_that_throws_dice(spark: SparkSession):
    """Each row is judged once: what is counted as dropped is what is left out, and a violation names its rule."""
    frame = spark.range(400).withColumnRenamed("id", "number")
    written, quality = checked(frame, rules(("dice", "rand() < 0.5", DROP), ("more", "rand() < 0.5", WARN)))
    assert 0 < quality.dropped == quality.rules[0].failed < 400
    assert len(written) == quality.accepted
    thrown = apply_expectations(
        frame, rules(("never", "rand() < -1", FAIL), ("dice", "rand() < 0.5", FAIL)), Observation()
    )
    assert "never" in violation_of(thrown)[0]


@pytest.mark.timeout(120)
def test_two_hundred_rules(frame: DataFrame):
    """So many are counted and applied one by one, and planned in the time of this test."""
    many = [(f"r{i}", f"id > {i} OR age > {i}", DROP if i % 2 else FAIL) for i in range(-200, 0)]
    bad = [("last", "id IS NOT NULL", DROP), ("pos", "amount > 0", WARN)]
    written, quality = checked(frame, rules(*many, *bad))
    assert written == [1, 3, 5, 6]
    assert [count.failed for count in quality.rules] == [0] * 200 + [2, 2]


def test_rules_that_look_alike(frame: DataFrame):
    """Names with any characters, and columns named like our own, do no harm."""
    odd = frame.withColumnsRenamed({"id": "rows", "amount": "dropped", "age": "rule_0"})
    given = rules(('it\'s `odd` "really"', "dropped > 0", DROP), ("rule_0", "rule_0 >= 18", WARN))
    written, quality = checked(odd, given)
    assert len(written) == 4
    assert [count.failed for count in quality.rules] == [2, 3]


def test_no_rules(frame: DataFrame):
    """Without rules a stream's query is left as it is; a batch's rows are still counted."""
    assert apply_expectations(frame, [], "name") is frame
    assert checked(frame, [])[1] == Quality(6, 0, ())


GOOD = [
    "id > 0",
    "id IS NOT NULL AND (amount BETWEEN 0 AND 10 OR age IN (1, 2))",
    "CASE WHEN id > 0 THEN amount > 0 ELSE true END",
    "upper(CAST(id AS STRING)) RLIKE '^[0-9]+$'",
    "exists(array(id, amount), x -> x > 0)",
    "`id` < 10 -- a comment",
    "true",
]


@pytest.mark.parametrize("constraint", GOOD)
def test_constraints_that_are_fine(frame: DataFrame, constraint: str):
    """SQL conditions over the row are accepted."""
    check_expectations(frame, rules(("r", constraint, WARN)), "orders")


BAD = [
    ("id >", "does not parse"),
    ("id > 0; drop table x", "does not parse"),
    ("select id", "does not"),
    ("nope > 0", "does not fit the rows"),
    ("no_such_function(id)", "does not fit the rows"),
    ("id + 1", "not a boolean"),
    ("'true'", "not a boolean"),
    ("count(*) > 0", "beyond the row"),
    ("row_number() over (order by id) = 1", "beyond the row"),
    ("explode(array(true, false))", "beyond the row"),
    ("id in (select 1)", "outside the row"),
    ("exists (select 1)", "outside the row"),
    ("(select true)", "outside the row"),
    ("reflect('java.lang.System', 'currentTimeMillis') > '0'", "outside the row"),
    ("java_method('java.lang.System', 'exit', 0) = '0'", "outside the row"),
    ("length(input_file_name()) > 0", "outside the row"),
]


@pytest.mark.parametrize(("constraint", "how"), BAD)
def test_constraints_that_are_not(frame: DataFrame, constraint: str, how: str):
    """What is no condition over one row is refused with the rule's name and its text."""
    with pytest.raises(InvalidExpectation) as caught:
        check_expectations(frame, rules(("first", "true", WARN), ("bad", constraint, DROP)), "orders")
    assert "'bad'" in caught.value.what
    assert constraint in caught.value.what
    assert how in caught.value.what
    assert caught.value.remedy
