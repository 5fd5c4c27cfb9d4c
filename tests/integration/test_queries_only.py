"""Only queries are run by a verb that reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headwater.event_log.conditions import NotAQuery
from headwater_spark.facade.queries_only import check_query


def test_what_changes_something_is_refused(spark: SparkSession, tmp_path: Path):
    """Changes of rows, tables, files and settings, also behind a WITH and in a script; queries and temporary views are not."""
    table = f"delta.`{tmp_path / 'table'}`"
    spark.range(3).write.format("delta").save(str(tmp_path / "table"))
    for statement in (
        f"DELETE FROM {table}",
        f"DELETE FROM {table} WHERE id = 1",
        f"UPDATE {table} SET id = 1",
        f"INSERT INTO {table} VALUES (5)",
        f"WITH x AS (SELECT 5) INSERT INTO {table} SELECT * FROM x",
        f"INSERT OVERWRITE DIRECTORY '{tmp_path / 'out'}' USING json SELECT 1",
        f"MERGE INTO {table} t USING {table} s ON t.id = s.id WHEN MATCHED THEN DELETE",
        f"FROM {table} INSERT INTO {table} SELECT id",
        f"DROP TABLE {table}",
        f"TRUNCATE TABLE {table}",
        f"CREATE TABLE delta.`{tmp_path / 'new'}` USING delta AS SELECT 1 AS a",
        f"ALTER TABLE {table} SET TBLPROPERTIES ('a' = 'b')",
        f"VACUUM {table}",
        f"RESTORE TABLE {table} TO VERSION AS OF 0",
        f"OPTIMIZE {table}",
        "SET spark.sql.ansi.enabled = false",
        "CREATE VIEW kept AS SELECT 1",
        "CREATE OR REPLACE GLOBAL TEMP VIEW everywhere AS SELECT 1",
        "ADD JAR '/tmp/x.jar'",
        f"BEGIN DELETE FROM {table}; END",
        f"EXPLAIN DELETE FROM {table}",
    ):
        with pytest.raises(NotAQuery):
            pytest.fail(f"taken: {check_query(spark, statement)} {statement}")
    for statement in (
        "SELECT 1",
        "VALUES (1), (2)",
        f"WITH x AS (SELECT * FROM {table}) SELECT * FROM x WHERE id IN (SELECT id FROM {table})",
        f"FROM {table} |> WHERE id > 1",
        f"TABLE {table}",
        "CREATE OR REPLACE TEMP VIEW mine AS SELECT 1",
        "SELECT 'DROP TABLE x; DELETE FROM y'",
    ):
        check_query(spark, statement)
    assert spark.read.format("delta").load(str(tmp_path / "table")).count() == 3
