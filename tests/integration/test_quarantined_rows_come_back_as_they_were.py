"""Rows that a quarantine takes come back from the pass that writes the others, as they were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headwater.definitions.expectation import Expectation, UniqueKey, ViolationAction
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.delta_writes.delta_append import DeltaAppend
from headwater_spark.delta_writes.staged_append import StagedAppend, stage_append
from headwater_spark.rules import one_pass
from headwater_spark.rules.expectations import Quality, RuleCounts
from headwater_spark.rules.judgement import is_kept, mark_rows, own_columns

pytestmark = pytest.mark.usefixtures("adaptive")

# Quick where a session is there: they run each time.

BAD = Expectation("good", "NOT bad", ViolationAction.QUARANTINE)
DICE = Expectation("dice", "rand() < 0.5", ViolationAction.QUARANTINE)
DROP = Expectation("even", "id % 2 = 0", ViolationAction.DROP)


def passed(frame: DataFrame, *rules: Expectation) -> tuple[list[Any], Quality, DataFrame | None]:
    """What a pass over a frame lets through, what it counts, and what it collects."""
    marked, observation = mark_rows(frame, rules), one_pass.BatchObservation()
    seen = one_pass.observe_rows(marked, rules, observation)
    accepted = (
        seen.where(is_kept(rules)).select(*[F.col(f"`{name}`") for name in own_columns(seen)]).collect()
    )
    return accepted, *one_pass.read_observed(marked, rules, observation)


def test_rows_of_many_types_come_back(spark: SparkSession):
    """Values of every type that is collected are those that went in, also NULL, and inside of structs, arrays and maps."""
    values = """
        SELECT true AS bad, CAST(1.50 AS DECIMAL(20, 5)) AS d, X'00FF' AS b, DATE '1999-12-31' AS day, 'x' AS `a b.c`,
            TIMESTAMP '2024-03-31 02:30:00.123456' AS at, TIMESTAMP_NTZ '2024-03-31 02:30:00.123456' AS wall,
            named_struct('at', TIMESTAMP '1970-01-01 00:00:00', 'n', CAST(NULL AS INT)) AS s,
            array(1, NULL) AS list, map('k', named_struct('v', 1.5D)) AS m, CAST('NaN' AS DOUBLE) AS nan
        UNION ALL SELECT true, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
        UNION ALL SELECT false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL"""
    frame = spark.sql(values)
    assert one_pass.can_collect(frame.schema, [BAD])
    accepted, quality, rejected = passed(frame, BAD)
    assert (len(accepted), quality) == (1, Quality(3, 0, (RuleCounts("good", 1, 2),), 2))
    assert rejected is not None
    back = rejected.select(*[F.col(f"`{name}`") for name in frame.columns])
    assert {str(row) for row in back.collect()} == {str(row) for row in frame.where("bad").collect()}


@pytest.mark.parametrize("columns", ["v VARIANT", "s STRUCT<i: INTERVAL DAY>", "a ARRAY<DATE>"])
def test_types_that_do_not(columns: str):
    """Rows with these are kept meanwhile: they would not come back, or not as they were."""
    assert not one_pass.can_collect(StructType.fromDDL(columns), [BAD])
    unique = Expectation("once", "", ViolationAction.QUARANTINE, unique=UniqueKey(("id",)))
    assert not one_pass.can_collect(StructType.fromDDL("id INT"), [BAD, unique])


@pytest.mark.parametrize("value", ["DATE '1582-10-04'", "repeat('x', 64001)"])
def test_rows_that_are_not_collected(spark: SparkSession, value: str):
    """A row of long ago, or one that is too large, is counted, and its lack is told."""
    frame = spark.sql(f"SELECT true AS bad, {value} AS v UNION ALL SELECT false, {value}")
    accepted, quality, rejected = passed(frame, BAD)
    assert (len(accepted), quality.quarantined, rejected) == (1, 1, None)


def test_a_rule_that_throws_dice(spark: SparkSession):
    """Each row is judged once: it is kept or collected, never both, and none is missing."""
    accepted, quality, rejected = passed(spark.range(1000).toDF("id"), DICE, DROP)
    assert rejected is not None
    ids = [row.id for row in accepted] + [row.id for row in rejected.collect()]
    assert len(ids) == len(set(ids)) == 1000 - quality.dropped


def test_no_more_rows_than_there_is_room(spark: SparkSession, monkeypatch: pytest.MonkeyPatch):
    """Of too many none is taken for all; the counts are whole."""
    monkeypatch.setattr(one_pass, "_MOST", 10)
    _, quality, rejected = passed(spark.range(100).selectExpr("id", "id < 50 AS bad"), BAD)
    assert (quality.quarantined, rejected) == (50, None)


def test_files_are_part_of_the_table_with_the_commit(spark: SparkSession, tmp_path: Path):
    """Before it readers see nothing; after it the table is as after an append by Delta: columns, partitions, transaction and
    history. A batch that the table has is not staged.
    """
    rows, table = spark.sql("SELECT 1 AS id, 'a' AS part UNION ALL SELECT 2, 'b'"), tmp_path / "table"
    batch = BatchTransaction("flow", 0, '{"told": 1}')
    staged = stage_append(rows, table, batch, ("part",))
    assert isinstance(staged, StagedAppend)
    assert staged.rows == 2
    assert not list(table.glob("_delta_log/*.json"))
    staged.commit(batch)
    DeltaAppend(tmp_path / "plain", ("part",)).write(rows, batch)
    assert stage_append(rows, table, batch, ("part",)) is None
    wider = stage_append(
        rows.withColumn("more", F.lit(1)), table, BatchTransaction("flow", 1, "{}"), ("part",)
    )
    assert wider is not None
    wider.commit(BatchTransaction("flow", 1, "{}"))
    rows_read = spark.read.format("delta").load(str(table)).select("id", "part", "more").collect()
    assert sorted((tuple(row) for row in rows_read), key=str) == sorted(
        [(1, "a", None), (2, "b", None), (1, "a", 1), (2, "b", 1)], key=str
    )
    history = [
        spark.sql(f"DESCRIBE HISTORY delta.`{path}`").orderBy("version").first()
        for path in (table, tmp_path / "plain")
    ]
    fields = ("operation", "operationParameters", "userMetadata", "isBlindAppend")
    assert [history[0][name] for name in fields] == [history[1][name] for name in fields]
    assert history[0]["operationMetrics"]["numOutputRows"] == "2"
