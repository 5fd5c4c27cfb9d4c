"""What public pipelines write beside the main arguments is honoured: orders, settings, options, columns of several flows."""

from __future__ import annotations

import shutil

import pytest
from tests.pipeline_case import read_rows

pytestmark = pytest.mark.usefixtures("one_partition")

SOURCE = """
dp.create_streaming_table("late", spark_conf={"spark.sql.ansi.enabled": "false"})

@dp.append_flow(target="late", depends_on=["first", "watched"])
def lenient():
    return spark.readStream.schema("text STRING").json(LANDING + "/texts").selectExpr("cast(text AS INT) n")

@dp.append_flow(target="late", spark_conf={"spark.sql.ansi.enabled": "true"}, name="strict")
def strict_rows():
    return spark.readStream.schema("text STRING").json(LANDING + "/texts").selectExpr("try_cast(text AS INT) n").where("n > 5")

@dp.table
def first():
    files = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.inferSchema", "true")
    files = files.option("cloudFiles.maxFilesPerTrigger", 2).option("cloudFiles.maxBytesPerTrigger", "100b")
    return files.schema("id INT, pad STRING").load(LANDING + "/files")

@dp.temporary_view
def watched():
    return dp.read("by_query")

@dp.materialized_view
def by_query():
    return spark.sql("WITH few AS (SELECT id FROM first WHERE id < 3) SELECT a.id FROM few a JOIN few b USING (id)")

@dp.temporary_view
def people():
    return spark.readStream.schema("id INT, name STRING, at INT, op STRING").json(LANDING + "/people")

@dp.temporary_view
def places():
    return spark.readStream.schema("ID INT, city STRING, at INT").json(LANDING + "/places")

dp.create_streaming_table("persons")
dp.create_auto_cdc_flow("persons", "people", ["id"], "at", name="names", apply_as_deletes="op = 'D'", except_column_list=["op"])
dp.create_auto_cdc_flow("persons", "places", ["id"], "at", name="cities", column_list=["ID", "city"], ignore_null_updates=True)

@dp.table(schema="id INT, n BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 10 INCREMENT BY 5)")
def numbered():
    return spark.readStream.schema("id INT").json(LANDING + "/people")

@dp.table(table_properties={"delta.enableTypeWidening": "true"})
def wide():
    return spark.readStream.schema("v INT").json(LANDING + "/wide")

@dp.table(table_properties={"delta.enableTypeWidening": "true"})
def below():
    return dp.read_stream("wide")

dp.create_streaming_table("filled")
dp.create_auto_cdc_flow("filled", "people", ["id"], "at", except_column_list=["op"], apply_as_deletes="op = 'D'")

@dp.append_flow(target="filled", name="archive", once=True)
def rows_of_before():
    return spark.sql("SELECT 1 id, 'of old' name, 0 at UNION ALL SELECT 9, 'of old', 0")
"""
SQL = """
CREATE OR REFRESH MATERIALIZED VIEW hourly SCHEDULE REFRESH EVERY 1 HOUR AS SELECT 1 AS one;
CREATE FLOW before_them AS INSERT INTO ONCE filled BY NAME SELECT 10 AS id, 'by SQL' AS name, 0 AS at;
"""


def land(case, folder: str, *rows: dict[str, object]) -> None:
    """A file of rows."""
    case.land(list(rows), folder)


@pytest.mark.timeout(600)
def test_one_pipeline_with_all_of_them(pipeline, spark):
    """Two updates: in the first everything is new, in the second only some of the sources have moved."""
    case = pipeline(SOURCE)
    case.write("transformations/more.sql", SQL)
    land(case, "wide", {"v": 1})
    land(case, "texts", {"text": "7"}, {"text": "x"})
    # Two small files, one that is too large for a batch, and five small ones.
    for number, width in enumerate((10, 10, 500, 1, 1, 1, 1, 1)):
        land(case, "files", {"id": number, "pad": "x" * width})
    land(
        case,
        "people",
        {"id": 1, "name": "Ann", "at": 5, "op": "U"},
        {"id": 2, "name": "Bob", "at": 5, "op": "U"},
    )
    land(case, "places", {"ID": 1, "city": "Rome", "at": 9}, {"ID": 1, "city": None, "at": 10})
    report = case.update()
    assert report.state == "COMPLETED", report.error
    manifest = case.project().state_folder.joinpath("manifest.json").read_text()
    assert '"depends_on"' in manifest
    assert '"schedule": "0 * * * *"' in manifest

    # The order: the table waited for those that it does not read, one of them through a view.
    def moments(kind: str) -> dict[str, float]:
        return {
            event["origin"]["flow_name"]: event["timestamp"].timestamp()
            for event in case.events(event_type=("flow_progress",))
            if event["details"]["flow_progress"]["status"] == kind
        }

    ended, began = moments("COMPLETED"), moments("STARTING")
    assert began["lenient"] >= max(ended["first"], ended["by_query"])
    assert case.rows("late", order="n nulls last") == [(7,), (7,), (None,)]

    # The batches: at most two files, and 100 bytes unless it is one file.
    batches = [
        event["details"]["flow_progress"]["metrics"]["num_input_rows"]
        for event in case.events(event_type=("flow_progress",), level="METRICS")
        if event["origin"]["flow_name"] == "first"
    ]
    assert sum(batches) == 8
    assert max(batches) <= 2
    assert len(batches) >= 5

    # The later event of the one flow does not keep out the columns of the other.
    assert case.columns("persons") == ["id", "name", "at", "city"]
    assert case.rows("persons", order="id") == [(1, "Ann", 5, "Rome"), (2, "Bob", 5, None)]
    assert case.rows("filled", order="id") == [
        (1, "Ann", 5),
        (2, "Bob", 5),
        (9, "of old", 0),
        (10, "by SQL", 0),
    ]

    numbers = case.rows("numbered", order="id")
    assert [row[0] for row in numbers] == [1, 2]

    case.rewrite(
        SOURCE.replace('schema("v INT")', 'schema("v BIGINT")').replace(
            '["id"], "at", except_column_list=["op"], apply',
            '["id"], F.expr("at + 0"), except_column_list=["op"], apply',
        )
    )
    land(case, "wide", {"v": 2**40})
    land(
        case,
        "people",
        {"id": 1, "name": "old", "at": 4, "op": "U"},
        {"id": 2, "name": None, "at": 6, "op": "D"},
    )
    land(case, "places", {"ID": 3, "city": "Oslo", "at": 1}, {"ID": 1, "city": "Bonn", "at": 8})
    report = case.update()
    assert report.state == "COMPLETED", report.error
    assert case.rows("persons", order="id") == [(1, "Ann", 5, "Rome"), (3, None, None, "Oslo")]
    assert case.rows("filled", order="id") == [(1, "Ann", 5), (9, "of old", 0), (10, "by SQL", 0)]
    # A column that gets wider in the query is wider in the table, and in one that reads it.
    for name in ("wide", "below"):
        rows = spark.read.format("delta").load(str(case.table(name)))
        assert rows.schema.simpleString() == "struct<v:bigint>"
        assert sorted(row.v for row in rows.collect()) == [1, 2**40]
    # Rows keep their numbers, and new ones have others.
    later = case.rows("numbered", order="id")
    assert set(numbers) < set(later)
    assert len({n for _, n in later}) == len(later) == 4
    assert {n % 5 for _, n in later} == {0}
    assert min(n for _, n in later) >= 10
    # A view with a CTE of which nothing has moved is left alone.
    plans = {
        event["origin"]["flow_name"]: event["message"]
        for event in case.events(event_type=("planning_information",))
        if event["origin"]["update_id"] == report.result.update_id
    }
    assert "NO_OP" in plans["by_query"]
    # The origin has Lakeflow's fields, and nothing to say in them.
    assert {event["origin"]["cluster_id"] for event in case.events()} == {None}
    # After a full refresh the numbers go on.
    assert case.update(full_refresh=("numbered",)).state == "COMPLETED"
    again = [n for _, n in case.rows("numbered", order="id")]
    assert len(again) == 4
    assert min(again) > max(n for _, n in later)


JOBS = """
def landed():
    return spark.readStream.schema("id INT, name STRING").json(LANDING)

for job in ("plain", "once_each"):
    dp.create_streaming_table(job, path=f"{JOBS}/{job}/table")

@dp.append_flow(target="plain", import_checkpoint=f"{JOBS}/plain/checkpoint")
def as_it_comes():
    return landed()

@dp.append_flow(target="once_each", import_checkpoint=f"{JOBS}/once_each/checkpoint")
def without_duplicates():
    return landed().dropDuplicates(["id"])
"""


@pytest.mark.timeout(240)
def test_jobs_by_hand_become_flows(pipeline, spark, tmp_path):
    """Rows and state go on where the jobs stood; a batch that was written and not marked as done is not written again."""
    jobs = tmp_path / "jobs"
    case = pipeline(f"JOBS = {str(jobs)!r}\n{JOBS}")
    landed = spark.readStream.schema("id INT, name STRING").json(str(case.landing))
    queries = {"plain": landed, "once_each": landed.dropDuplicates(["id"])}
    for rows in (
        [{"id": 1, "name": "a"}, {"id": 2, "name": "a"}],
        [{"id": 2, "name": "b"}, {"id": 3, "name": "b"}],
    ):
        case.land(rows)
        for name, query in queries.items():
            writer = query.writeStream.format("delta").option(
                "checkpointLocation", str(jobs / name / "checkpoint")
            )
            writer.trigger(availableNow=True).start(str(jobs / name / "table")).awaitTermination()
    commits = jobs / "plain" / "checkpoint" / "commits"
    newest = max((path for path in commits.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))
    newest.unlink()
    (commits / f".{newest.name}.crc").unlink(missing_ok=True)
    before = {path: path.read_bytes() for path in jobs.rglob("checkpoint/**/*") if path.is_file()}
    case.land([{"id": 3, "name": "c"}, {"id": 4, "name": "c"}])
    report = case.update()
    assert report.state == "COMPLETED", report.error
    plain = [(1, "a"), (2, "a"), (2, "b"), (3, "b"), (3, "c"), (4, "c")]
    assert read_rows(jobs / "plain" / "table") == plain
    assert [row[0] for row in read_rows(jobs / "once_each" / "table")] == [1, 2, 3, 4]
    # The jobs' own checkpoints were only read, and later updates do not look at them.
    assert {path: path.read_bytes() for path in jobs.rglob("checkpoint/**/*") if path.is_file()} == before
    imported = [e for e in case.events(event_type=("operation_progress",)) if "IMPORTED" in str(e["details"])]
    assert len(imported) == 2
    shutil.rmtree(jobs / "plain" / "checkpoint")
    case.land([{"id": 4, "name": "d"}])
    report = case.update()
    assert report.state == "COMPLETED", report.error
    assert read_rows(jobs / "plain" / "table") == [*plain, (4, "d")]
    assert [row[0] for row in read_rows(jobs / "once_each" / "table")] == [1, 2, 3, 4]
