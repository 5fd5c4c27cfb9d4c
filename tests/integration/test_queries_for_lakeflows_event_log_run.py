"""Queries that people publish for Lakeflow's event log run on ours as they are, the pipeline's id put in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.pipeline_case import PipelineCase

import query_events
from headwater.errors import QueryFailed, UnknownDataset, UnsupportedSource
from headwater_spark.commands.query import run_statements, split_statements

SOURCE = """
HEARD = []

@dp.on_event_hook
def note(event):
    HEARD.append(event["event_type"])
    if event["event_type"] == "update_progress" and event["details"]["update_progress"]["state"] == "COMPLETED":
        open(LANDING + "/../heard.txt", "w").write(" ".join(HEARD))

@dp.table
@dp.expect("small", "amount < 100")
@dp.expect_or_drop("positive", "amount > 0")
def sales():
    return spark.readStream.schema("id INT, amount INT").json(LANDING)

@dp.materialized_view(comment="token=abc123")
def total():
    return dp.read("sales").groupBy().agg(F.sum("amount").alias("amount"))

dp.create_sink("out", "delta", {"tableName": "shop.copy"})

@dp.append_flow(target="out", spark_conf={"spark.my.password": "hunter2"})
def copy():
    return dp.read_stream("sales")
"""
LATEST = """
CREATE OR REPLACE TEMP VIEW event_log_raw AS SELECT * FROM event_log("case");
CREATE OR REPLACE TEMP VIEW latest_update AS
SELECT origin.update_id AS id FROM event_log_raw WHERE event_type = 'create_update' ORDER BY timestamp DESC LIMIT 1;
"""


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[PipelineCase]:
    prepared = PipelineCase(tmp_path_factory.mktemp("queries"), SOURCE)
    prepared.land([{"id": 1, "amount": 5}, {"id": 2, "amount": -1}, {"id": 3, "amount": 500}])
    assert prepared.update().state == "COMPLETED"
    return prepared


@pytest.fixture
def ask(case: PipelineCase, spark: SparkSession) -> Any:
    def rows(sql: str) -> list[tuple[Any, ...]]:
        frame = run_statements(spark, case.project(), sql)
        assert frame is not None
        return [tuple(row) for row in frame.collect()]

    return rows


def test_lineage_of_the_latest_update(ask):
    """What each flow of the newest update reads and writes."""
    rows = ask(
        LATEST + "SELECT details:flow_definition.output_dataset as output_dataset,"
        " details:flow_definition.input_datasets as input_dataset FROM event_log_raw, latest_update"
        " WHERE event_type = 'flow_definition' AND origin.update_id = latest_update.id ORDER BY 1"
    )
    assert [(output, json.loads(inputs)) for output, inputs in rows] == [
        ("out", [{"name": "sales"}]),
        ("sales", []),
        ("total", [{"name": "sales"}]),
    ]


def test_plans_name_tables(ask):
    """The plan of a flow names the tables that it reads, not the stand-ins over which it was made."""
    sql = "SELECT origin.flow_name, details:flow_definition.explain_text FROM event_log('case') WHERE event_type = 'flow_definition'"
    plans = dict(ask(sql))
    assert plans["copy"] == "FileSource[sales]"
    assert not any("headwater-" in plan for plan in plans.values())


def test_data_quality_by_rule(ask):
    """Passed and failed rows of each rule, exploded from the JSON array, with spaces before the colons."""
    rows = ask(
        LATEST
        + """
SELECT row_expectations.dataset as dataset, row_expectations.name as expectation,
  SUM(row_expectations.passed_records) as passing_records, SUM(row_expectations.failed_records) as failing_records
FROM (
  SELECT explode(from_json(details :flow_progress :data_quality :expectations,
      "array<struct<name: string, dataset: string, passed_records: int, failed_records: int>>")) row_expectations
  FROM event_log_raw, latest_update
  WHERE event_type = 'flow_progress' AND origin.update_id = latest_update.id)
GROUP BY row_expectations.dataset, row_expectations.name ORDER BY 2"""
    )
    assert rows == [("sales", "positive", 2, 1), ("sales", "small", 2, 1)]


def test_data_quality_through_variants(ask):
    """The same by `variant_explode` over `parse_json`, with casts by `::`, in one statement."""
    rows = ask(
        """
SELECT origin.flow_name, ex.value:name::string AS rule, ex.value:failed_records::bigint AS failed,
  details:flow_progress.data_quality.dropped_records::bigint AS dropped
FROM event_log('case') e,
  LATERAL variant_explode(parse_json(e.details:flow_progress.data_quality.expectations)) AS ex
WHERE e.event_type = "flow_progress" ORDER BY rule"""
    )
    assert rows == [("sales", "positive", 1, 1), ("sales", "small", 1, 1)]


def test_quality_over_time_of_a_table(ask):
    """`event_log(TABLE(t))` of a table of the pipeline, with a CTE and `LATERAL VIEW explode`."""
    rows = ask(
        """
WITH progress AS (
  SELECT origin.update_id AS update_id, timestamp, from_json(details:flow_progress.data_quality.expectations,
    'array<struct<name: string, dataset: string, passed_records: bigint, failed_records: bigint>>') AS checks
  FROM event_log(TABLE(shop.sales))
  WHERE event_type = 'flow_progress' AND details:flow_progress.data_quality.expectations IS NOT NULL)
SELECT c.name, sum(c.passed_records) AS passed, sum(c.failed_records) AS failed
FROM progress LATERAL VIEW explode(checks) AS c GROUP BY update_id, c.name ORDER BY c.name"""
    )
    assert rows == [("positive", 2, 1), ("small", 2, 1)]


def test_files_that_were_taken_in(case: PipelineCase, ask):
    """`cloud_files_state` of a table, a flow, or a checkpoint's folder; another name is refused, and so is a dataset that reads it."""
    folder = case.checkpoint("sales").folder
    for asked in ("TABLE(shop.sales)", "TABLE(sales)", "'sales'", f"'{folder}'"):
        rows = ask(
            f"SELECT path, size > 0, commit_time > create_time, ingestion_state, batch_id, flow_name FROM cloud_files_state({asked})"
            " WHERE discovery_time IS NULL ORDER BY path"
        )
        assert rows == [(str(case.landing / "00001.json"), True, True, "INGESTED", 0, "sales")]
    for asked in ("'/no/folder'", "TABLE(nothing)"):
        with pytest.raises(UnknownDataset, match="no table"):
            ask(f"SELECT * FROM cloud_files_state({asked})")
    with case.resolved() as pipeline, pytest.raises(UnsupportedSource, match="can't be read by a dataset"):
        pipeline.session.sql("SELECT * FROM cloud_files_state('sales')")


def test_names_of_rules_by_a_star(ask):
    """`expectations[*].name` gives the names of all rules."""
    rows = ask(
        "SELECT details:flow_progress.data_quality.expectations[*].name AS names FROM event_log('case')"
        " WHERE event_type = 'flow_progress' AND details:flow_progress.data_quality.expectations[0].name IS NOT NULL"
    )
    assert json.loads(rows[0][0]) == ["small", "positive"]


def test_backlog_and_rows(ask):
    """Backlog and rows written as numbers, by a function as a cast and by `::`."""
    rows = ask(
        LATEST
        + """
SELECT timestamp, Double(details :flow_progress.metrics.backlog_bytes) as backlog,
  details:flow_progress.metrics.backlog_files::bigint, try_cast(details:flow_progress.metrics.num_output_rows AS BIGINT)
FROM event_log_raw, latest_update WHERE event_type = 'flow_progress' AND origin.update_id = latest_update.id
  AND origin.flow_name = 'copy'"""
    )
    assert (0.0, 0) in [(row[1], row[2]) for row in rows]
    assert 2 in [row[3] for row in rows]


def test_who_did_what(ask):
    """User actions, with the columns named by the last steps of their paths."""
    frame_rows = ask(
        "SELECT timestamp, details:user_action:action, details:user_action:user_name"
        " FROM event_log('case') WHERE event_type = 'user_action'"
    )
    assert [row[1] for row in frame_rows] == ["START"]
    assert frame_rows[0][2]


def test_a_path_names_its_column(case, spark):
    """A column that is a path and nothing more is called like the path's last step."""
    frame = run_statements(
        spark,
        case.project(),
        "SELECT details:user_action.action, upper(details:a.b) u FROM event_log('case')",
    )
    assert frame.columns == ["action", "u"]


def test_runtime_updates_and_plans(ask):
    """On what an update ran, how it ended, and how a view was refreshed."""
    runtime = ask(
        "SELECT details:create_update:runtime_version:spark_version FROM event_log('case')"
        " WHERE event_type = 'create_update'"
    )
    assert runtime[0][0].startswith("4.")
    states = ask(
        "SELECT details:update_progress.state FROM event_log('case') WHERE event_type = 'update_progress'"
        " ORDER BY timestamp"
    )
    assert [state for (state,) in states] == [
        *("CREATED", "INITIALIZING", "SETTING_UP_TABLES", "RUNNING", "STOPPING", "COMPLETED")
    ]
    technique = ask(
        "SELECT filter(from_json(details:planning_information:technique_information,"
        " 'array<struct<maintenance_type: string, is_chosen: boolean>>'), t -> t.is_chosen)[0].maintenance_type"
        " FROM event_log('case') WHERE event_type = 'planning_information'"
    )
    assert technique == [("MAINTENANCE_TYPE_COMPLETE_RECOMPUTE",)]


def test_columns_and_errors(ask):
    """The plainest of them all: the newest records with their columns; and counts by type."""
    rows = ask(
        "SELECT id, timestamp, level, event_type, message, error, maturity_level, sequence.data_plane_id.seq_no"
        " FROM event_log('case') WHERE level IN ('INFO', 'WARN', 'ERROR') ORDER BY timestamp DESC LIMIT 10"
    )
    assert rows[0][3] == "update_progress"
    counts = dict(ask("SELECT event_type, count(*) FROM event_log('case') GROUP BY event_type"))
    assert counts == {
        "user_action": 1,
        "create_update": 1,
        "update_progress": 6,
        "runtime_details": 1,
        "dataset_definition": 2,
        "sink_definition": 1,
        "flow_definition": 3,
        "planning_information": 1,
        "flow_progress": 12,
        "stream_progress": 2,
        "hook_progress": 1,
        "operation_progress": 1,
    }


def test_what_is_not_there_is_told(ask):
    """A pipeline, a table or a path that is not there is named; a syntax error says where."""
    with pytest.raises(UnknownDataset, match="There is no event log of a pipeline 'other'"):
        ask("SELECT * FROM event_log('other')")
    with pytest.raises(UnknownDataset, match="There is no event log"):
        ask("SELECT * FROM event_log('../case')")
    with pytest.raises(UnknownDataset, match=r"'shop.other' is no table of this pipeline"):
        ask("SELECT * FROM event_log(TABLE(shop.other))")
    with pytest.raises(QueryFailed, match="cannot be resolved"):
        ask("SELECT nothing FROM event_log('case')")
    with pytest.raises(QueryFailed):
        ask("SELEC 1")


def test_statements_are_told_apart(spark):
    """A semicolon in a text or a comment ends no statement."""
    assert [s.strip() for s in split_statements(spark, "SELECT ';' a; -- it's; one\nSELECT 2;\n")] == [
        "SELECT ';' a",
        "-- it's; one\nSELECT 2",
    ]


def test_the_command_line(case, capsys):
    """`headwater events --sql` prints the columns and rows of the last query, and tells what it can't find."""
    roots = [str(case.folder), f"--storage={case.storage}", f"--warehouse={case.warehouse}", "--json"]
    sql = "SELECT 1; SELECT origin.flow_name, count(*) AS n FROM event_log_raw WHERE event_type = 'flow_definition' GROUP BY 1 ORDER BY 1"
    assert query_events.main([*roots, "--limit=2", f"--sql={sql}"]) == 0
    answer = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (answer["columns"], answer["rows"]) == (["flow_name", "n"], [["copy", 1], ["sales", 1]])
    assert query_events.main([*roots, "--sql=SELECT * FROM event_log('other')"]) == 2
    assert "no event log" in capsys.readouterr().err


def test_a_dataset_reads_an_event_log(case, tmp_path):
    """A pipeline makes a table of the log of another one in the same storage."""
    text = """
@dp.materialized_view
def failures():
    return spark.sql("SELECT details:flow_progress.status AS status FROM event_log('case') WHERE event_type = 'flow_progress'")
"""
    reader = PipelineCase(tmp_path, text)
    reader.write(
        "pipeline.yml", (reader.folder / "pipeline.yml").read_text().replace("name: case", "name: watcher")
    )
    reader.storage = case.storage
    assert reader.update().state == "COMPLETED"
    assert ("COMPLETED",) in reader.rows("failures", order="1")


def test_secrets_and_hooks(case):
    """No secret of settings or comments is in the log; the hook heard of the update's end, in the log's order."""
    log = json.dumps(case.events(), default=str)
    assert "hunter2" not in log
    assert "abc123" not in log
    words = Path(case.root / "heard.txt").read_text().split()
    assert words[:2] == ["user_action", "create_update"]
    assert words[-1] == "update_progress"
    assert not {"stream_progress", "hook_progress", "planning_information"} & set(words)


def test_measures_of_a_batch(case):
    """A batch's record has rates, duration, executor time; Spark's own JSON lies beside it."""
    metrics = next(e for e in case.events(flow="sales", level="METRICS"))["details"]["flow_progress"][
        "metrics"
    ]
    assert metrics["batch_duration_ms"] > 0
    assert metrics["processed_rows_per_second"] > 0
    assert metrics["executor_time_ms"] > 0
    progress = case.events(flow="sales", event_type="stream_progress")[0]
    assert progress["maturity_level"] == "EVOLVING"
    assert json.loads(progress["details"]["stream_progress"]["progress_json"])["numInputRows"] == 3
    done = case.events(flow="copy", event_type="flow_progress")[-1]["details"]["flow_progress"]
    assert done["metrics"]["source_metrics"] == [
        {
            "source_name": "sales",
            "backlog_records": 0,
            "backlog_bytes": 0,
            "backlog_files": 0,
            "backlog_seconds": 0.0,
        }
    ]


def test_an_update_that_breaks_off_has_its_ends(spark, tmp_path, monkeypatch):
    """Where the engine itself fails, each flow and the update still get their terminal records, with the cause."""
    case = PipelineCase(tmp_path, SOURCE)

    def broken(*_: Any) -> None:
        raise RuntimeError("no more threads, token=abc123")

    monkeypatch.setattr("headwater_spark.execution.update.run_refreshes", broken)
    with pytest.raises(RuntimeError):
        case.update()
    states = {
        e["origin"]["flow_name"]: e["details"]["flow_progress"]["status"]
        for e in case.events(event_type="flow_progress")
    }
    assert states == {"sales": "STOPPED", "total": "STOPPED", "copy": "STOPPED"}
    ended = case.events(event_type="update_progress")[-1]
    assert ended["details"]["update_progress"]["state"] == "FAILED"
    assert ended["error"]["exceptions"][0]["message"] == "no more threads, token=[redacted]"
