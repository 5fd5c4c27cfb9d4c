"""What is not a statement of a pipeline is refused at its line and column, with what to write instead."""

from __future__ import annotations

import pytest

from headwater.errors import HeadwaterError, InvalidPipeline, UnsupportedArgument
from headwater.sql_sources.conditions import SqlNotUnderstood, StatementNotAllowed
from headwater.sql_sources.reading import read_source
from headwater.sql_sources.source import SqlSource
from headwater.sql_sources.values import Values


def refused(text: str) -> HeadwaterError:
    """The error of a text, whose statement begins in line 3, after another one."""
    source = SqlSource("f.sql", f"CREATE STREAMING TABLE first;\n\n{text}")
    with pytest.raises(InvalidPipeline) as caught:
        list(read_source(source, Values({}.__getitem__)))
    assert not caught.value.transient
    return caught.value


@pytest.mark.parametrize(
    ("text", "column", "remedy"),
    [
        ("CREATE STREAMIN TABLE t AS SELECT 1", 1, "CREATE [PRIVATE] STREAMING TABLE"),
        ("CREATE OR REPLAC STREAMING TABLE t AS SELECT 1", 1, "CREATE OR REFRESH [PRIVATE] STREAMING TABLE"),
        ("CREATE MATERIALISED VIEW t AS SELECT 1", 1, "MATERIALIZED VIEW"),
        ("APLY CHANGES INTO t FROM STREAM(s)", 1, "APPLY CHANGES INTO"),
        ("USING CATALOG a", 1, "USE CATALOG name"),
        ("xyz", 1, "A source declares"),
        ("CREATE STREAMING TABLE t AS", 27, ""),
        ("CREATE STREAMING TABLE", 22, ""),
        ("CREATE STREAMING TABLE t (id INT COMENT 'x')", 34, "COMMENT"),
        ("CREATE STREAMING TABLE t (id INT,)", 34, ""),
        ("CREATE STREAMING TABLE t (id INT", 32, ")"),
        ("CREATE STREAMING TABLE t (id INT, x)", 35, "Give all columns their types"),
        ("CREATE STREAMING TABLE t (x, id INT)", 30, "Give all columns their types"),
        ("CREATE STREAMING TABLE t (CONSTRAINT c EXPCT (a))", 40, "EXPECT (condition)"),
        ("CREATE STREAMING TABLE t (CONSTRAINT c EXPECT (a)", 49, ""),
        ("CREATE STREAMING TABLE t (CONSTRAINT c EXPECT ((a))", 51, ""),
        ("CREATE STREAMING TABLE t (CONSTRAINT c EXPECT (a)) ON", 52, "COMMENT"),
        ("CREATE STREAMING TABLE t (CONSTRAINT c EXPECT ())", 47, "parentheses"),
        ("CREATE STREAMING TABLE t (CONSTRAINT c EXPECT (a) ON VIOLATION DROP ROWS)", 64, "DROP ROW"),
        ("CREATE STREAMING TABLE t PARTITION BY (a) AS SELECT 1", 26, "PARTITIONED BY"),
        ("CREATE STREAMING TABLE t COMMENT a AS SELECT 1", 34, ""),
        ("CREATE STREAMING TABLE t COMMENT 'a' COMMENT 'b' AS SELECT 1", 38, "Keep one"),
        ("CREATE STREAMING TABLE t TBLPROPERTIES (a = b) AS SELECT 1", 45, ""),
        ("CREATE STREAMING TABLE t FLOW APPEND BY NAME SELECT 1", 31, "INSERT BY NAME"),
        ("CREATE MATERIALIZED VIEW t", 26, "AS"),
        ("CREATE MATERIALIZED VIEW t FLOW INSERT BY NAME SELECT 1", 28, "AS"),
        ("CREATE TEMPORARY VIEW t (a INT) AS SELECT 1", 28, "cast"),
        ("CREATE TEMPORARY VIEW t CLUSTER BY (a) AS SELECT 1", 25, "COMMENT"),
        ("CREATE FLOW f AS INSERT INTO t SELECT 1", 32, "BY NAME"),
        ("CREATE FLOW f AS UPSERT INTO t BY NAME SELECT 1", 18, "INSERT INTO"),
        ("APPLY CHANGES INTO t FROM s KEYS (a) SEQUENCE BY b", 27, "STREAM(source)"),
        ("AUTO CDC INTO t FROM STREAM(s) KEY (a) SEQUENCE BY b", 32, "KEYS"),
        ("AUTO CDC INTO t FROM STREAM(s) KEYS (a)", 39, "SEQUENCE BY"),
        ("AUTO CDC INTO t FROM STREAM(s) SEQUENCE BY a", 44, "KEYS"),
        ("AUTO CDC INTO t FROM STREAM(s) KEYS (a) KEYS (b) SEQUENCE BY a", 41, "Keep one"),
        ("AUTO CDC INTO t FROM STREAM(s) KEYS (a) SEQUENCE BY", 51, ""),
        ("AUTO CDC INTO t FROM STREAM(s) KEYS (a) SEQUENCE BY a STORED AS SCD TYPE 3", 74, "1, 2"),
        ("SET x y", 7, "="),
        ("SET TIME ZONE 'UTC'", 5, "spark.sql.session.timeZone"),
        ("USE a.b.c", 9, "USE CATALOG"),
        ("CREATE STREAMING TABLE t COMMENT 'x", 34, "Close it"),
        ("CREATE STREAMING TABLE t /* AS SELECT 1", 26, "Close it"),
        ("CREATE STREAMING TABLE `t AS SELECT 1", 24, "Close it"),
    ],
)  # fmt: skip
def test_what_is_not_understood(text: str, column: int, remedy: str):
    """The place is that of the first thing that does not fit, and the remedy has the nearest form."""
    error = refused(text)
    assert isinstance(error, SqlNotUnderstood)
    assert error.where == f"f.sql:3:{column}"
    assert remedy in error.remedy


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("INSERT INTO t SELECT 1", "CREATE FLOW"),
        ("insert overwrite t select 1", "CREATE FLOW"),
        ("DELETE FROM t", "AUTO CDC"),
        ("UPDATE t SET a = 1", "AUTO CDC"),
        ("MERGE INTO t USING s ON a = b WHEN MATCHED THEN DELETE", "AUTO CDC"),
        ("TRUNCATE TABLE t", "--full-refresh"),
        ("DROP TABLE t", "headwater drop"),
        ("ALTER TABLE t ADD COLUMN a INT", "A table's columns are those of its query"),
        (
            "ALTER TABLE c.s.t SET TBLPROPERTIES (delta.enableChangeDataFeed = true)",
            "the next update sets them",
        ),
        ("ALTER STREAMING TABLE t ADD SCHEDULE EVERY 1 HOUR", "airflow: {schedule"),
        ("ALTER MATERIALIZED VIEW v CLUSTER BY (a)", "CLUSTER BY (...) into the statement"),
        ("ALTER TABLE t ALTER COLUMN a COMMENT 'x'", "behind the column's type"),
        ("ALTER TABLE t RENAME TO u", "only reads is altered where it is written"),
        ("CREATE TABLE t (a INT) AS SELECT 1", "STREAMING TABLE"),
        ("CREATE TABLE t SELECT 1", "STREAMING TABLE"),
        ("CREATE TABLE t FLOW AUTO CDC FROM STREAM(s) KEYS (id) SEQUENCE BY n", "STREAMING TABLE"),
        ("CREATE OR REPLACE TABLE t AS SELECT 1", "STREAMING TABLE"),
        ("CREATE VIEW v AS SELECT 1", "TEMPORARY VIEW"),
        ("CREATE OR REPLACE VIEW v AS SELECT 1", "TEMPORARY VIEW"),
        ("CREATE FUNCTION f() RETURNS INT RETURN 1", "Python source"),
        ("CREATE SCHEMA s", "first table"),
        ("REFRESH STREAMING TABLE t", "headwater run"),
        ("COPY INTO t FROM '/x'", "read_files"),
        ("OPTIMIZE t", "headwater maintenance"),
        ("VACUUM t", "headwater maintenance"),
        ("GRANT SELECT ON t TO u", "DAG"),
        ("SELECT * FROM t", "headwater events --sql"),
        ("WITH a AS (SELECT 1) SELECT * FROM a", "headwater events --sql"),
        ("(SELECT 1)", "headwater events --sql"),
        ("DESCRIBE t", "headwater events --sql"),
        ("BEGIN SELECT 1", "DAG"),
    ],
)
def test_what_is_not_allowed(text: str, remedy: str):
    """A statement that would do something at once is named, with what does the same in a pipeline."""
    error = refused(text)
    assert isinstance(error, StatementNotAllowed)
    assert error.where == "f.sql:3:1" or text.startswith("(")
    assert remedy in error.remedy


@pytest.mark.parametrize(
    ("text", "column", "said"),
    [
        ("CREATE MATERIALIZED VIEW v SCHEDULE CRON '5 0 * * * ?' AS SELECT 1", 42, "SCHEDULE CRON '5 0"),
        ("CREATE MATERIALIZED VIEW v SCHEDULE REFRESH EVERY 5 HOURS AS SELECT 1", 45, "SCHEDULE EVERY 5 HOURS"),
        ("CREATE MATERIALIZED VIEW v SCHEDULE CRON '0 0 0 * * ?' AT TIME ZONE 'Asia/Tokyo' AS SELECT 1", 42, "Asia/Tokyo"),
        ("CREATE MATERIALIZED VIEW v TRIGGER ON UPDATE AS SELECT 1", 28, "TRIGGER"),
        ("CREATE MATERIALIZED VIEW v WITH ROW FILTER f ON (a) AS SELECT 1", 28, "ROW FILTER"),
        ("CREATE STREAMING TABLE t (a INT MASK f) AS SELECT 1", 33, "MASK"),
        ("AUTO CDC INTO t FROM SNAPSHOT s KEYS (a)", 17, "SNAPSHOT"),
        ("AUTO CDC INTO t FROM STREAM(s) KEYS (a) WHERE a > 1 SEQUENCE BY b", 41, "WHERE"),
        ("SET pipelines.triger.interval = 1 second", 1, "pipelines.triger.interval"),
        ("SET pipelines.trigger.interval = often", 1, "length of time"),
        ("SET pipelines.reset.allowed = false", 1, "means nothing there"),
    ],
)  # fmt: skip
def test_what_can_not_be_honoured(text: str, column: int, said: str):
    """A clause that is understood, and that open Spark and Delta do not have, is refused with the reason."""
    error = refused(text)
    assert isinstance(error, UnsupportedArgument)
    assert error.where == f"f.sql:3:{column}"
    assert said in error.what
    assert error.remedy or "length of time" in error.what
