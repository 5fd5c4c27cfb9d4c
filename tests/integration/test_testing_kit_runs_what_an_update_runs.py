"""The testing kit runs a dataset over the rows of a test as an update would over its sources."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from headwater.errors import ExpectationViolated, SourceNotGiven, UsageError
from headwater.testing import EventGenerator, run_dataset, run_pipeline

SOURCE = """
@dp.table
def bronze():
    return (spark.readStream.format("kafka").option("kafka.bootstrap.servers", "nowhere:1").option("subscribe", "clicks")
            .load().select(F.col("value").cast("string").alias("text"), "offset"))

CLICK = "event_id STRING, user_id STRING, event_type STRING, event_time TIMESTAMP"

@dp.table
@dp.expect_or_drop("readable", "event_id IS NOT NULL AND event_time IS NOT NULL")
@dp.expect("known_type", "event_type IN ('view', 'click')")
def silver():
    return dp.read_stream("bronze").select(F.from_json("text", CLICK).alias("c")).select("c.*")

@dp.table
def once_each():
    return (dp.read_stream("silver").where("event_id IS NOT NULL AND event_time IS NOT NULL")
            .withWatermark("event_time", "10 minutes").dropDuplicatesWithinWatermark(["event_id"]))

@dp.table
def per_hour():
    return (dp.read_stream("silver").withWatermark("event_time", "10 minutes")
            .groupBy(F.window("event_time", "1 hour")).agg(F.count("*").alias("clicks"))
            .select("window.start", "window.end", "clicks"))

@dp.temporary_view
def views():
    return spark.sql("SELECT * FROM STREAM silver WHERE event_type = 'view'")

@dp.materialized_view
def by_user():
    return dp.read("once_each").groupBy("user_id").agg(F.count("*").alias("clicks"))

@dp.table
@dp.expect_or_fail("has_id", "id IS NOT NULL")
def files():
    return spark.readStream.schema("id INT, name STRING, bad STRING").option("columnNameOfCorruptRecord", "bad").json(f"{LANDING}/files")

@dp.table
def listed():
    rows = spark.readStream.format("csv").schema("id INT, name STRING").option("header", True).load(f"{LANDING}/lists")
    return rows.join(spark.read.table("names"), "name", "left")
"""


@pytest.fixture
def source(pipeline):
    """The folder of the pipeline under test."""
    return pipeline(SOURCE).folder


def click(number: int, minute: int, event_type: str = "view") -> dict:
    """A row of silver."""
    at = datetime(2026, 1, 1, 10, tzinfo=UTC) + timedelta(minutes=minute)
    return {"event_id": f"e{number}", "user_id": f"u{number % 2}", "event_type": event_type, "event_time": at}


def test_a_dataset_by_batches(source):
    """Each batch is an update: rows, drops and counts of rules are known by batch and in all."""
    run = run_dataset(
        source, "silver", inputs={"bronze": [[{"text": '{"event_id": "a", "event_type": "view", "event_time": "2026-01-01T10:00:00Z"}'}, {"text": "<no>"}], [{"text": '{"event_id": "b", "event_type": "buy", "event_time": "2026-01-01T10:01:00Z"}'}]]}
    )  # fmt: skip
    assert [[row["event_id"] for row in batch.rows] for batch in run.batches] == [["a"], ["b"]]
    assert [batch.dropped for batch in run.batches] == [1, 0]
    assert run.dropped == 1
    assert (run.expectations["readable"].passed, run.expectations["readable"].failed) == (2, 1)
    assert run.batches[1].expectations["known_type"].failed == 1
    assert run.columns["event_time"] == "timestamp"
    run.assert_equals_batch()


KINESIS = """
@dp.table
def clicks():
    rows = spark.readStream.format("kinesis").option("streamName", "clicks").load()
    return rows.selectExpr("CAST(data AS STRING) AS text", "partitionKey AS key", "stream")
"""


def test_kinesis(pipeline):
    """Texts, dicts and whole records stand for those of a stream, in the columns of the source."""
    records = ["a", {"id": 1}, {"data": b"b", "partitionKey": "k"}]
    run = run_dataset(pipeline(KINESIS).folder, "clicks", inputs={"kinesis:clicks": records})
    assert sorted(tuple(row.values()) for row in run.rows) == [
        ("a", "0", "clicks"),
        ("b", "k", "clicks"),
        ('{"id": 1}', "1", "clicks"),
    ]


def test_whole_pipeline(pipeline):
    """Rows for a topic, as texts or as whole messages, run through every dataset, each once; a materialized view has what its batch
    query gives.
    """
    events = EventGenerator("clicks", seed=6, late=0).batches(1, 60)
    (messages,), (texts,) = events.messages(), events.texts()
    whole = pipeline(SOURCE.partition("@dp.table\n@dp.expect_or_fail")[0]).folder
    run = run_pipeline(whole, inputs={"kafka:clicks": [*messages[:30], *texts[30:]]})
    assert set(run) == {"bronze", "silver", "once_each", "per_hour", "by_user"}
    assert len(run["bronze"].rows) == 60
    assert run["silver"].expectations["readable"].failed >= events.count("malformed")
    ids = [row["event_id"] for row in run["once_each"].rows]
    assert sorted(ids) == sorted(event.identity for event in events.distinct)
    assert sum(row["clicks"] for row in run["by_user"].rows) == len(ids)
    for name in ("silver", "once_each", "by_user"):
        run[name].assert_equals_batch()


def test_windows_close_with_the_watermark(source):
    """A window is written when the watermark has passed its end; what is still open is in the batch result only."""
    batches = [[click(1, 5), click(2, 50)], [click(3, 65)], [click(4, 75)], [click(5, 200)]]
    run = run_dataset(source, "per_hour", inputs={"silver": batches}, each="micro_batch")
    assert [[row["clicks"] for row in batch.rows] for batch in run.batches][:2] == [[], []]
    assert sorted(row["clicks"] for row in run.rows) == [2, 2]
    run.assert_equals_batch(where="end <= timestamp'2026-01-01 12:00:00Z'")
    with pytest.raises(AssertionError, match="only in the batch result"):
        run.assert_equals_batch()


def test_micro_batches_of_one_update(source):
    """With each="micro_batch" the batches come in one update, in their order, an empty one too; what comes too late is left out."""
    batches = [[click(1, 0)], [], [click(1, 1), click(2, 2), click(3, 60)], [click(4, 61)], [click(5, 3)]]
    run = run_dataset(source, "once_each", inputs={"silver": batches}, each="micro_batch")
    ids = [[row["event_id"] for row in batch.rows] for batch in run.batches]
    assert ids == [["e1"], [], ["e2", "e3"], ["e4"], []]
    assert [batch.input_rows for batch in run.batches] == [1, 0, 3, 1, 1]


def test_a_view_runs_as_a_table(source):
    """A temporary view can be run alone; SQL text finds the given rows."""
    run = run_dataset(source, "views", inputs={"silver": [click(1, 0), click(2, 1, "click")]})
    assert [row["event_id"] for row in run.rows] == ["e1"]
    run.assert_equals_batch()


def test_files_as_they_are(source):
    """Rows of a file source land in files of its own format, a text as it is, so what is malformed is read as such: an expectation
    that fails the flow fails the test's run with the same error.
    """
    with pytest.raises(ExpectationViolated, match="has_id"):
        run_dataset(source, "files", inputs={"json:files": ['{"id": "x"}']})
    run = run_dataset(
        source, "files", inputs={"json:files": [[{"id": 1, "name": "a"}], ['{"id": 2, "name": 3}']]}
    )
    run.assert_rows([{"id": 1, "name": "a"}, {"id": 2, "name": "3"}])
    assert [len(batch.rows) for batch in run.batches] == [1, 1]


def test_csv_and_a_joined_table(source):
    """CSV has its header, and a table that is joined is given by its name."""
    inputs = {
        "files:lists": [{"id": 1, "name": "a"}, {"id": 2, "name": "b,c"}],
        "names": [{"name": "b,c", "city": "Graz"}],
    }
    run = run_dataset(source, "listed", inputs=inputs)
    run.assert_rows([{"id": 1, "name": "a", "city": None}, {"id": 2, "name": "b,c", "city": "Graz"}])


def test_what_is_not_given(source):
    """A source without rows is refused with the key to give, and so are rows that nothing reads."""
    with pytest.raises(SourceNotGiven, match="'clicks'") as error:
        run_dataset(source, "silver", inputs={})
    assert 'inputs={"kafka:clicks"' in error.value.remedy
    with pytest.raises(SourceNotGiven, match="Nothing that was run reads 'kafka:other'"):
        run_dataset(source, "silver", inputs={"bronze": [{"text": "x"}], "kafka:other": ["x"]})


def test_a_row_that_does_not_fit(source):
    """A column that the source does not have, and a value of another type, are told with their place."""
    with pytest.raises(UsageError, match=r"Row 1 of 'silver'.*'event_idd'") as error:
        run_dataset(source, "once_each", inputs={"silver": [{"event_idd": "x"}]})
    assert "'event_id'" in error.value.remedy
    with pytest.raises(UsageError, match=r"'event_id'.*string"):
        run_dataset(source, "once_each", inputs={"silver": [{"event_id": 5.5}]})


def test_a_lone_file(tmp_path, spark):
    """A source file without a pipeline can be run; columns come from the rows, or from schemas. Delta keeps each table it met for an
    hour: a run does not keep those of runs before it in memory.
    """
    path = tmp_path / "doubled.py"
    path.write_text(
        "from headwater import pipelines as dp\n@dp.materialized_view\ndef doubled():\n    return spark.read.table('raw.numbers').selectExpr('n', 'n * 2 AS twice')\n"
    )
    run = run_dataset(path, "doubled", inputs={"raw.numbers": [[{"n": 1}], [{"n": 2}]]})
    run.assert_rows([{"n": 1, "twice": 2}, {"n": 2, "twice": 4}])
    assert run.columns == {"n": "bigint", "twice": "bigint"}
    write_deltalake(str(tmp_path / "before"), pa.table({"id": [1]}))
    logs = spark._jvm.org.apache.spark.sql.delta.DeltaLog
    log = logs.forTable(spark._jsparkSession, str(tmp_path / "before"))
    assert logs.forTable(spark._jsparkSession, str(tmp_path / "before")) == log
    typed = run_dataset(path, "doubled", inputs={"raw.numbers": []}, schemas={"raw.numbers": "n INT"})
    assert (typed.rows, typed.columns) == ([], {"n": "int", "twice": "int"})
    assert logs.forTable(spark._jsparkSession, str(tmp_path / "before")) != log
