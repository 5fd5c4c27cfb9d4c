"""SQL sources: each statement makes the manifest and the table that its Python twin makes, and bad input is refused at its place."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from deltalake import DeltaTable
from tests.pipeline_case import PipelineCase

from headwater.errors import HeadwaterError
from headwater.graph.stored_manifest import stored_manifest

# Both halves have the same tables, in the schemas `sql` and `py`; `outer` is read by both.
SQL = """
USE SCHEMA sql;
CREATE OR REFRESH STREAMING TABLE bronze (
  CONSTRAINT has_id EXPECT (id IS NOT NULL) ON VIOLATION DROP ROW,
  CONSTRAINT small EXPECT (id < 3)
)
COMMENT 'as it landed' TBLPROPERTIES ('quality' = 'bronze', pipelines.reset.allowed = false)
AS SELECT *, _metadata.file_name AS file   -- a comment; with a semicolon
FROM STREAM read_files("${landing}", format => 'json', schemaHints => 'id INT, seq INT, ts TIMESTAMP') AS f;

CREATE OR REFRESH STREAMING LIVE TABLE silver (
  id INT NOT NULL COMMENT 'the key', name STRING, day DATE, `year` INT GENERATED ALWAYS AS (YEAR(day)),
  CONSTRAINT known EXPECT (name <> 'c') ON VIOLATION QUARANTINE ROW
)
PARTITIONED BY (day)
AS SELECT bronze.id, name, CAST(ts AS DATE) AS day FROM STREAM(LIVE.bronze) WHERE op <> :deleted;

CREATE MATERIALIZED VIEW gold (who COMMENT 'by name', n) CLUSTER BY (who)
AS WITH named AS (SELECT name FROM silver) SELECT name, count(*) FROM named GROUP BY name;

CREATE OR REFRESH PRIVATE MATERIALIZED VIEW inner_ AS SELECT id, word FROM silver JOIN shop.outer USING (id);

CREATE TEMPORARY VIEW selected (number COMMENT 'n', CONSTRAINT low EXPECT (number < 100) ON VIOLATION DROP ROW)
AS SELECT id * 40 FROM bronze;
CREATE MATERIALIZED VIEW from_view REFRESH POLICY FULL AS SELECT number FROM selected;

CREATE STREAMING TABLE many (CONSTRAINT many_ids EXPECT (id > 0)) CLUSTER BY (id);
CREATE FLOW sql_more COMMENT 'all' AS INSERT INTO many BY NAME SELECT id FROM STREAM bronze;
CREATE FLOW sql_past AS INSERT INTO ONCE many BY NAME SELECT id + 100 AS id FROM shop.outer;

CREATE STREAMING TABLE latest;
CREATE FLOW sql_latest AS AUTO CDC INTO latest FROM STREAM bronze KEYS (id) IGNORE NULL UPDATES
APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq, ts, file, _rescued_data) STORED AS SCD TYPE 1;

CREATE STREAMING TABLE history FLOW AUTO CDC FROM (SELECT id, name, op, seq FROM STREAM(bronze))
KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY STRUCT(seq, id) COLUMNS id, name, op STORED AS SCD TYPE 2 TRACK HISTORY ON name;

CREATE STREAMING TABLE windows
AS SELECT window.start AS at, count(*) AS n FROM STREAM bronze WATERMARK ts DELAY OF INTERVAL 1 MINUTE
GROUP BY window(ts, '1 hour');

CREATE STREAMING TABLE newest FLOW REPLACE USING (id) SEQUENCE BY seq BY NAME SELECT id, seq FROM STREAM bronze;

SET spark.sql.ansi.enabled = false;
CREATE MATERIALIZED VIEW lenient AS SELECT CAST(name AS INT) AS n, '${spark.sql.ansi.enabled}' AS ansi FROM IDENTIFIER(:space || '.silver');
CREATE LIVE TABLE paths AS SELECT to_json(struct(name)):name::string AS a, concat('{"x":{"y":', id, '}}'):x:y AS b FROM bronze;
"""
NOTEBOOK = """# Databricks notebook source
import dlt as dp
@dp.table(name="py.of_cell")
def of_cell():
    return dp.read("sql.gold")

# COMMAND ----------
# MAGIC %sql
# MAGIC CREATE LIVE TABLE sql.of_cell
# MAGIC AS SELECT * FROM py.gold
"""
PYTHON = """
@dp.materialized_view
def outer():
    return spark.createDataFrame([(1, "one"), (2, "two")], "id INT, word STRING")

@dp.streaming_table(name="py.bronze", comment="as it landed",
                    table_properties={"quality": "bronze", "pipelines.reset.allowed": False})
@dp.expect_or_drop("has_id", "id IS NOT NULL")
@dp.expect("small", "id < 3")
def bronze():
    stream = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.inferColumnTypes", True)
    hinted = stream.option("cloudFiles.schemaHints", "id INT, seq INT, ts TIMESTAMP")
    return hinted.load(LANDING).select("*", F.col("_metadata.file_name").alias("file"))

SILVER = "id INT NOT NULL COMMENT 'the key', name STRING, day DATE, `year` INT GENERATED ALWAYS AS (YEAR(day))"
@dp.streaming_table(name="py.silver", schema=SILVER, partition_cols=["day"])
@dp.expect_or_quarantine("known", "name <> 'c'")
def silver():
    return dp.read_stream("py.bronze").where("op <> 'D'").selectExpr("id", "name", "CAST(ts AS DATE) AS day")

@dp.materialized_view(name="py.gold", cluster_by=["who"])
def gold():
    counted = dp.read("py.silver").groupBy("name").agg(F.count("*").alias("n"))
    return counted.select(F.col("name").alias("who", metadata={"comment": "by name"}), "n")

@dp.materialized_view(name="py.inner_", private=True)
def inner_():
    return dp.read("py.silver").join(dp.read("outer"), "id").select("id", "word")

@dp.temporary_view(name="py.selected")
@dp.expect_or_drop("low", "number < 100")
def selected():
    return dp.read("py.bronze").select((F.col("id") * 40).alias("number", metadata={"comment": "n"}))

@dp.materialized_view(name="py.from_view", refresh_policy="full")
def from_view():
    return dp.read("py.selected").select("number")

dp.create_streaming_table("py.many", expect_all={"many_ids": "id > 0"}, cluster_by=["id"])
@dp.append_flow(target="py.many", name="py_more", comment="all")
def more():
    return dp.read_stream("py.bronze").select("id")
@dp.append_flow(target="py.many", name="py_past", once=True)
def past():
    return dp.read("outer").selectExpr("id + 100 AS id")

dp.create_streaming_table("py.latest")
dp.create_auto_cdc_flow("py.latest", "py.bronze", ["id"], "seq", ignore_null_updates=True, apply_as_deletes="op = 'D'",
    except_column_list=["op", "seq", "ts", "file", "_rescued_data"], name="py_latest")

dp.create_streaming_table("py.history")
@dp.temporary_view(name="py.history_changes")
def changes():
    return dp.read_stream("py.bronze").select("id", "name", "op", "seq")
dp.create_auto_cdc_flow("py.history", "py.history_changes", ["id"], F.struct("seq", "id"), apply_as_deletes=F.expr("op = 'D'"),
    column_list=["id", "name", "op"], stored_as_scd_type=2, track_history_column_list=["name"])

@dp.streaming_table(name="py.windows")
def windows():
    marked = dp.read_stream("py.bronze").withWatermark("ts", "1 minute")
    return marked.groupBy(F.window("ts", "1 hour")).agg(F.count("*").alias("n")).select(F.col("window.start").alias("at"), "n")

@dp.materialized_view(name="py.paths")
def paths():
    made = dp.read("py.bronze").select(F.get_json_object(F.to_json(F.struct("name")), "$.name").alias("a"), F.concat(
        F.lit('{"x":{"y":'), "id", F.lit("}}")).alias("json"))
    return made.select("a", F.get_json_object("json", "$.x.y").alias("b"))

@dp.table(name="py.newest", replace_using=["id"], sequence_by="seq")
def newest():
    return dp.read_stream("py.bronze").select("id", "seq")

@dp.materialized_view(name="py.lenient", spark_conf={"spark.sql.ansi.enabled": False})
def lenient():
    return dp.read("py.silver").select(F.col("name").cast("int").alias("n"), F.lit("false").alias("ansi"))
"""
ROWS = [
    {"id": 1, "name": "a", "op": "I", "seq": 1, "ts": "2026-01-01T00:00:00Z"},
    {"id": 2, "name": "b", "op": "I", "seq": 1, "ts": "2026-01-02T01:00:00Z"},
    {"id": 2, "name": None, "op": "U", "seq": 2, "ts": "2026-01-02T02:00:00Z"},
    {"id": 3, "name": "c", "op": "I", "seq": 1, "ts": "2026-01-02T02:10:00Z"},
    {"id": 1, "name": "a", "op": "D", "seq": 2, "ts": "2026-01-02T03:00:00Z"},
    {"id": None, "name": "d", "op": "I", "seq": 2, "ts": "2026-01-02T03:00:00Z"},
]


def of_python(entry: Any) -> dict[str, Any]:
    """An entry of the manifest with SQL's names turned into their twins', without its place."""
    text = re.sub(r"\bsql(?=[._/])", "py", entry.model_dump_json())
    fields = {key: value for key, value in json.loads(text).items() if key != "defined_at"}
    # In the order of declarations, and the halves are declared one after the other.
    return {**fields, "inputs": sorted(fields.get("inputs", ()))}


def as_stored(table: Any) -> tuple[Any, ...]:
    """What a table's log says of it, and its rows."""
    delta = DeltaTable(str(table))
    columns = [
        {
            **field,
            "metadata": {
                k: v for k, v in field["metadata"].items() if not k.startswith("delta.columnMapping")
            },
        }
        for field in json.loads(delta.schema().to_json())["fields"]
    ]
    meta = delta.metadata()
    rows = sorted(map(repr, delta.to_pyarrow_dataset().to_table().to_pylist()))
    return columns, meta.description, meta.partition_columns, meta.configuration, rows


def test_each_statement_is_its_twin(pipeline, one_partition: None):
    """Tables, views, rules, flows and AUTO CDC of SQL have the manifest and the tables that Python's have, after one update."""
    files = {"transformations/a.sql": SQL, "transformations/cells.py": NOTEBOOK}
    case: PipelineCase = pipeline(PYTHON, files=files, spec="  deleted: D\n  space: sql\n")
    case.land(ROWS)
    report = case.update()
    assert report.state == "COMPLETED", report.error
    manifest = stored_manifest(case.project())
    sql = {d.name.removeprefix("sql."): of_python(d) for d in manifest.datasets if d.name.startswith("sql.")}
    python = {d.name.removeprefix("py."): of_python(d) for d in manifest.datasets if d.name.startswith("py.")}
    assert len(sql) == 15
    assert sql == python
    assert {f.name for f in manifest.flows if f.name.startswith("sql")} == {
        *(f"sql.{name}" for name in sql if name not in ("many", "latest")), "sql_more", "sql_past", "sql_latest"
    }  # fmt: skip
    for flow in manifest.flows:
        # What either reads of the other is by design not its twin's.
        if flow.name.startswith("sql") and not flow.name.endswith("of_cell"):
            twin = next(f for f in manifest.flows if f.name == re.sub(r"^sql(?=[._])", "py", flow.name))
            assert of_python(flow) == of_python(twin)
    places = {d.name: d.defined_at for d in manifest.datasets}
    assert places["sql.bronze"] == "transformations/a.sql:3"
    assert places["sql.of_cell"] == "transformations/cells.py:9"

    pairs = {name: (as_stored(case.table(f"sql.{name}")), as_stored(case.table(f"py.{name}"))) for name in sql
             if name not in ("selected", "history_changes", "inner_")}  # fmt: skip
    assert {name: pair[0] for name, pair in pairs.items()} == {name: pair[1] for name, pair in pairs.items()}
    assert not case.table("sql.inner_").exists()
    # The twins could agree on nothing at all.
    assert case.rows("sql.silver", "id, name, year") == [(1, "a", 2026), (2, "b", 2026), (2, None, 2026)]
    assert case.rows("sql.gold") == [("a", 1), ("b", 1), (None, 1)]
    assert case.rows("sql.latest") == [(2, "b"), (3, "c")]
    assert case.rows("sql.history", "id, name") == [(1, "a"), (2, "b"), (2, None), (3, "c")]
    assert case.rows("sql.many", "id") == [(1,), (1,), (2,), (2,), (3,), (101,), (102,)]
    assert case.rows("sql.lenient") == [(None, "false")] * 3
    assert case.rows("sql.from_view") == [(40,), (40,), (80,), (80,)]
    counts = {
        (rule["name"], rule["dataset"]): (rule["passed_records"], rule["failed_records"])
        for event in case.events(event_type="flow_progress")
        for rule in ((event["details"] or {}).get("flow_progress", {}).get("data_quality") or {}).get(
            "expectations", ()
        )
    }
    assert counts["has_id", "sql.bronze"] == counts["has_id", "py.bronze"] == (5, 1)
    assert counts["known", "sql.silver"] == counts["known", "py.silver"]


OUTER = "\n@dp.materialized_view\ndef outer():\n    return spark.range(1)\n"
VIEW = "CREATE MATERIALIZED VIEW"


@pytest.mark.parametrize(
    ("sql", "condition", "place"),
    [
        (f"{VIEW} v AS SELECT 1;\n  INSERT INTO v SELECT 2", "STATEMENT_NOT_ALLOWED", "a.sql:2:3"),
        (f"{VIEW} v\nAS SELEC 1", "QUERY_FAILED", "a.sql:2:4"),
        (f"{VIEW} v AS SELECT\n  1,\n  idd FROM outer", "QUERY_FAILED", "a.sql:3:3"),
        (f"{VIEW} v AS\nSELECT * FROM outr", "QUERY_FAILED", "a.sql:2:15"),
        (f"\n{VIEW} outer AS SELECT 1", "DUPLICATE_DATASET", "a.sql:2"),
        (f"{VIEW} a AS SELECT * FROM py;\n{VIEW} b AS SELECT * FROM a", "DATASET_CYCLE", "a.sql:1"),
        (f"{VIEW} v AS SELECT * FROM STREAM outer", "STREAMING_READ_OF_MATERIALIZED_VIEW", "a.sql:1:31"),
        (f"{VIEW} v (a, b) AS SELECT * FROM outer", "QUERY_FAILED", "a.sql:1:38"),
        (f"{VIEW} v AS\nDROP TABLE outer", "ACTION_IN_DEFINITION", "a.sql:2:1"),
        (f"{VIEW} v AS SELECT * FROM outer WHERE id > :lowest", "MISSING_VALUE", "a.sql:1:62"),
        (f"{VIEW} v AS SELECT * FROM STREAM read_files('${{landing}}')", "INVALID_SOURCE_OPTION", "a.sql:1:31"),
        (f"{VIEW} v (\n CONSTRAINT a EXPECT (idd > 1)) AS SELECT * FROM outer", "INVALID_EXPECTATION", "a.sql:2"),
        (f"CREATE STREAMING TABLE t;\n{VIEW} v AS SELECT * FROM t", "FLOW_WITHOUT_TARGET", "a.sql:1"),
        (f"{VIEW} t (id BIGINT DEFAULT 1) AS SELECT id FROM outer", "UNSUPPORTED_ARGUMENT", "a.sql:1"),
        ("CREATE STREAMING TABLE t USING parquet AS SELECT id FROM outer", "UNSUPPORTED_ARGUMENT", "a.sql:1"),
        ("CREATE STREAMING TABLE t WITH ROW FILTER f ON (id) AS SELECT id FROM outer", "UNSUPPORTED_ARGUMENT", "a.sql:1"),
        ("CREATE STREAMING TABLE t AS SELECT id FROM outer", "NOT_A_DATAFRAME", "a.sql:1"),
        ("CREATE STREAMING TABLE t;\nAUTO CDC INTO t FROM STREAM(nobody) KEYS (id) SEQUENCE BY n", "UNKNOWN_DATASET", "a.sql:2"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_at_its_place(pipeline, sql: str, condition: str, place: str):
    """Faults of statements, queries, names across both languages and values: condition, file, line (and column); nothing is written."""
    cycle = "\n@dp.materialized_view\ndef py():\n    return dp.read('b')\n" if "FROM py" in sql else ""
    case: PipelineCase = pipeline(OUTER + cycle, files={"transformations/a.sql": sql})
    with pytest.raises(HeadwaterError) as caught:
        case.manifest()
    assert (caught.value.condition, caught.value.transient) == (condition, False)
    assert place in caught.value.where
    assert caught.value.where.startswith(str((case.folder / "transformations").resolve()))
    assert case.nothing_written()
