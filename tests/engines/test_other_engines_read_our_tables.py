"""Other engines read the tables that updates write, or refuse them for the feature that the page names.

``make test-engines`` makes the environment that ``HEADWATER_ENGINES`` names: these engines are no part of a checkout's own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from tests.pipeline_case import SPARK, PipelineCase

from headwater_spark.session import start_session

PAGE = Path(__file__).parents[2] / "docs" / "other-engines.md"
# By the name of the table: what is declared with it.
TABLES = {
    "plain": "",
    "partitioned": 'partition_cols=["team"]',
    "clustered": 'cluster_by=["id"]',
    "column_mapping": 'table_properties={"delta.columnMapping.mode": "name"}',
    "deletion_vectors": 'table_properties={"delta.enableDeletionVectors": "true"}',
    "row_tracking": 'table_properties={"delta.enableRowTracking": "true"}',
    "v2_checkpoint": 'table_properties={"delta.checkpointPolicy": "v2"}',
    "type_widening": 'table_properties={"delta.enableTypeWidening": "true"}',
    "in_commit_timestamps": 'table_properties={"delta.enableInCommitTimestamps": "true"}',
}
STREAM = """
@dp.table(name="{name}"{comma}{declared})
def _{name}():
    return spark.readStream.table("events").select("id", "team")
"""
SOURCE = """
@dp.table
def events():
    return spark.readStream.schema("id INT, team STRING, n INT").json(LANDING)

@dp.table
def timestamp_ntz():
    return spark.readStream.table("events").select("id", F.lit("2026-01-01 00:00:00").cast("timestamp_ntz").alias("at"))

@dp.table
def variant():
    return spark.readStream.table("events").select("id", F.parse_json(F.lit('{"a": 1}')).alias("v"))

dp.create_streaming_table("auto_cdc")
dp.create_auto_cdc_flow(target="auto_cdc", source="events", keys=["id"], sequence_by="n", stored_as_scd_type=1)

@dp.materialized_view
def materialized_view():
    return spark.read.table("events").groupBy("id").count()
"""
# What a stream can't do to its own table.
AFTERWARDS = {
    "deletion_vectors": ("DELETE FROM {table} WHERE id = 3",),
    "row_tracking": ("DELETE FROM {table} WHERE id = 3",),
    "type_widening": ("ALTER TABLE {table} ALTER COLUMN id TYPE BIGINT",),
}
ENGINES = ("duckdb", "polars", "delta-rs")
EXPECTED = [sum(range(12)), 12]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, list[int] | str]]:
    """What each engine says about each table after two updates."""
    streams = "".join(STREAM.format(name=n, declared=d, comma=", " if d else "") for n, d in TABLES.items())
    case = PipelineCase(tmp_path_factory.mktemp("engines"), SOURCE + streams)
    for first in (0, 6):
        case.land([{"id": i, "team": f"t{i % 2}", "n": i} for i in range(first, first + 6)])
        assert case.update().state == "COMPLETED"
    spark = start_session("tests", SPARK)
    for name, statements in AFTERWARDS.items():
        for statement in statements:
            spark.sql(statement.format(table=f"delta.`{case.table(name)}`"))
    spark.stop()
    names = [*TABLES, "timestamp_ntz", "variant", "auto_cdc", "materialized_view"]
    folders = {str(case.table(name)): name for name in names}
    python = os.environ["HEADWATER_ENGINES"]
    done = subprocess.run(
        [python, "-I", str(Path(__file__).with_name("reading.py")), *folders],
        capture_output=True,
        text=True,
        check=True,
    )
    read = json.loads(done.stdout.strip().rpartition("\n")[2])
    return {engine: {folders[folder]: answer for folder, answer in by.items()} for engine, by in read.items()}


def promised() -> dict[str, dict[str, bool]]:
    """The table of the page: by feature and engine, whether it is read."""
    rows = re.findall(r"^\| [^|]*\| `(\w+)` \| (\w+) \| (\w+) \| (\w+) \|$", PAGE.read_text(), re.MULTILINE)
    return {name: dict(zip(ENGINES, (one == "yes" for one in read), strict=True)) for name, *read in rows}


def test_the_page_is_true(answers: dict[str, dict[str, list[int] | str]]):
    """A yes gives all rows, a no is an error and never a wrong number."""
    page = promised()
    assert set(page) == set(answers["duckdb"])
    for engine in ENGINES:
        for name, answer in answers[engine].items():
            deleted = 3 if name in ("deletion_vectors", "row_tracking") else None
            right = EXPECTED if deleted is None else [EXPECTED[0] - deleted, EXPECTED[1] - 1]
            if page[name][engine]:
                assert answer == right, (engine, name, answer)
            else:
                assert isinstance(answer, str), (engine, name, answer)
