"""The record of the source beside each row: through which operators it is carried, and through which it can't be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headwater_spark.rules.source_records import SOURCE, with_source, without_source

# Quick where a session is there: they run each time.


@pytest.fixture
def rows(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """A stream of files."""
    (tmp_path / "in").mkdir()
    return spark.readStream.schema("id INT, day TIMESTAMP, v STRING").json(str(tmp_path / "in"))


CARRIED: dict[str, Callable[[DataFrame], DataFrame]] = {
    "as it is": lambda rows: rows,
    "columns and conditions": lambda rows: rows.where("id > 1")
    .select(F.upper("v").alias("id"))
    .where("id <> ''"),
    "an alias": lambda rows: rows.alias("r").select("r.id"),
    "a watermark and duplicates": lambda rows: rows.withWatermark("day", "1 hour").dropDuplicates(
        ["id", "day"]
    ),
    "an observation": lambda rows: rows.observe("o", F.count(F.lit(1)).alias("n")).select("v"),
    "a union": lambda rows: rows.where("id > 1").union(rows).select("v"),
    "another order": lambda rows: rows.repartition(3),
}
NOT_CARRIED: dict[str, Callable[[DataFrame], DataFrame]] = {
    "several rows of one": lambda rows: rows.select(F.explode(F.split("v", ",")).alias("v")),
    "one row of several": lambda rows: rows.groupBy("id").count(),
    "a join": lambda rows: rows.join(rows.sparkSession.range(3), "id"),
}


@pytest.mark.parametrize("query", CARRIED.values(), ids=CARRIED)
def test_carried(rows: DataFrame, query: Callable[[DataFrame], DataFrame]):
    """The record has all columns of the source, whatever the query keeps; without it the query is what it was."""
    before = query(rows)
    carried = with_source(before)
    record: Any = carried.schema[SOURCE].dataType
    assert carried.columns == [*before.columns, SOURCE]
    assert record.names == ["topic", "partition", "offset", "file", "record"]
    assert record["record"].dataType.names == ["id", "day", "v"]
    assert without_source(carried).schema == before.schema
    assert carried.isStreaming


@pytest.mark.parametrize("query", NOT_CARRIED.values(), ids=NOT_CARRIED)
def test_not_carried(rows: DataFrame, query: Callable[[DataFrame], DataFrame]):
    """Where a row has no record of its own, the query is left as it is."""
    before = query(rows)
    assert with_source(before) is before


def test_columnar_sources_when_it_must_be_cheap(spark: SparkSession, rows: DataFrame, tmp_path: Path):
    """For a message alone, no more columns of columnar files are read; lines of text are read whole anyway."""
    spark.range(3).write.format("delta").save(str(tmp_path / "t"))
    table = spark.readStream.format("delta").load(str(tmp_path / "t"))
    assert with_source(table, cheap=True) is table
    assert SOURCE in with_source(table).columns
    assert SOURCE in with_source(rows, cheap=True).columns


def test_a_union_of_unlike_sources(spark: SparkSession, rows: DataFrame, tmp_path: Path):
    """Records of other columns than each other are kept as JSON, each with its own columns; a join is no such input."""
    (tmp_path / "lines").mkdir()
    lines = spark.readStream.text(str(tmp_path / "lines")).selectExpr("1 AS id", "value AS v")
    carried = with_source(rows.select("id", "v").union(lines))
    record: Any = carried.schema[SOURCE].dataType
    assert carried.columns == ["id", "v", SOURCE]
    assert record["record"].dataType.simpleString() == "string"
    one_too_many = rows.select("id", "v").union(lines.join(spark.range(3), "id").select("id", "v"))
    assert with_source(one_too_many) is one_too_many


def test_a_query_of_the_files_own_columns(spark: SparkSession, tmp_path: Path):
    """A query that asks for `_metadata` has it still, beside the record and its file."""
    path = tmp_path / "in"
    spark.sql("SELECT 1 AS id, 'x' AS `odd``name`").coalesce(1).write.json(str(path))
    frame = spark.read.schema("id INT, `odd``name` STRING").json(str(path))
    (row,) = with_source(frame.select("id", "_metadata.file_name")).collect()
    assert row[SOURCE].file.endswith(row.file_name)
    assert (row.id, row[SOURCE].record.id, row[SOURCE].record["odd`name"]) == (1, 1, "x")
