"""Sinks: Delta exactly once, Kafka at least once, a function with each batch; none is cleared by a full refresh."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from delta.tables import DeltaTable
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from tests.pipeline_case import PipelineCase, UpdateReport, read_rows

from headwater.definitions.dataset import DatasetKind
from headwater.errors import CheckpointMismatch, UnsupportedArgument
from headwater_demo.kafka_broker import KafkaBroker

BRONZE = """
@dp.table
def bronze():
    return spark.readStream.schema("id INT, name STRING").option("maxFilesPerTrigger", 1).json(LANDING)
"""
DELTA = """
dp.create_sink("out", "delta", {"path": LANDING + "/../out"})
dp.create_sink(name="shared", format="delta", options={"tableName": "lake.shared"})

@dp.append_flow(name="to_out", target="out")
def to_out():
    return spark.readStream.table("bronze").withColumn("n", F.length("name"))

@dp.append_flow(target="shared")
def to_shared():
    return dp.read_stream("bronze").select("id")

@dp.append_flow(target="shared", once=True)
def backfill():
    return spark.range(100, 102).select(F.col("id").cast("int").alias("id"))
"""
MAILBOX = """
import pathlib

@dp.foreach_batch_sink
def mailbox(df, batch_id):
    with pathlib.Path(LANDING).with_name("mail").open("a") as mail:
        mail.writelines(f"{batch_id}:{row.id}\\n" for row in df.collect())

@dp.append_flow(target="mailbox")
def to_mailbox():
    return dp.read_stream("bronze")
"""
OF_ONES_OWN = """
import json
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, WriterCommitMessage


class Letters(DataSource):
    @classmethod
    def name(cls):
        return "letters"

    def streamWriter(self, schema, overwrite):
        return Writer(self.options["folder"])


class Writer(DataSourceStreamWriter):
    def __init__(self, folder):
        self.folder = folder

    def write(self, rows):
        message = WriterCommitMessage()
        message.lines = [json.dumps(row.asDict()) for row in rows]
        return message

    def commit(self, messages, batchId):
        folder = pathlib.Path(self.folder)
        folder.mkdir(exist_ok=True)
        lines = [line for message in messages for line in (message.lines if message else [])]
        with (folder / "letters").open("a") as letters:
            letters.writelines(f"{line}\\n" for line in lines)

    def abort(self, messages, batchId):
        pass


spark.dataSource.register(Letters)
dp.create_sink("post", "letters", {"folder": LANDING + "/../letters"})


@dp.append_flow(target="post")
def to_post():
    return dp.read_stream("bronze")
"""
LASTING = BRONZE + DELTA + MAILBOX + OF_ONES_OWN
FUNCTIONS = """
@dp.foreach_batch_sink
def two_places(df, batch_id):
    '''Writes each batch to two tables.'''
    base = LANDING + "/.."
    app = df.sparkSession.conf.get("headwater.txnAppId")
    writer = lambda name: (df.write.format("delta").mode("append").option("txnAppId", app).option("txnVersion", batch_id)
                           .save(f"{base}/{name}"))
    writer("first")
    if pathlib.Path(f"{base}/crash-{batch_id}").exists():
        raise RuntimeError("between the two")
    writer("second")

@dp.append_flow(target="two_places")
def to_two_places():
    return spark.readStream.table("bronze").withColumn("u", F.expr("uuid()"))

@dp.foreach_batch_sink(name="counts")
def merge_counts(df, batch_id):
    from delta.tables import DeltaTable
    path = LANDING.replace("/landing", "/counts")
    table = DeltaTable.createIfNotExists(df.sparkSession).location(path).addColumns(df.schema).execute()
    (table.alias("t").merge(df.alias("s"), "t.name = s.name")
        .whenMatchedUpdateAll().whenNotMatchedInsertAll().execute())

@dp.update_flow(target="counts")
def count_names():
    return spark.readStream.table("bronze").groupBy("name").count()

from delta.tables import DeltaTable

@dp.foreach_batch_sink
def upsert(micro_batch, batch_id):
    (DeltaTable.forName(spark, "retail_db.silver").alias("dt")
        .merge(source=micro_batch.alias("sdf"), condition="sdf.id = dt.id")
        .whenMatchedDelete(condition="sdf.name = 'a'")
        .whenMatchedUpdate(set={"name": "sdf.name"})
        .whenNotMatchedInsert(values={"id": "sdf.id", "name": "sdf.name"})
        .execute())
    DeltaTable.forName(micro_batch.sparkSession, "bronze").toDF().count()

@dp.append_flow(target="upsert")
def to_upsert():
    return spark.readStream.table("bronze")
"""
KAFKA = """
for topic in ("rows_of_sinks", "counts_of_sinks"):
    dp.create_sink("to_" + topic, "kafka", {"kafka.bootstrap.servers": "BROKER", "topic": topic})

@dp.append_flow(target="to_rows_of_sinks")
def rows():
    return dp.read_stream("bronze").select(F.col("name").alias("key"), F.to_json(F.struct("*")).alias("value"))

@dp.update_flow(target="to_counts_of_sinks")
def counts_of_rows():
    return dp.read_stream("bronze").groupBy("name").count().select(F.to_json(F.struct("*")).alias("value"))
"""
FIRST, SECOND, THIRD = (1, "a"), (2, "bb"), (3, "a")
SINKS = ("out", "shared", "mailbox", "post", "two_places", "counts", "upsert", "to_rows_of_sinks", "to_counts_of_sinks")  # fmt: skip


def land(case: PipelineCase, *rows: tuple[int, str]) -> None:
    """A file of rows."""
    case.land([{"id": number, "name": name} for number, name in rows])


def mail(case: PipelineCase) -> list[str]:
    """What the function was given, ``batch:id``."""
    return (case.root / "mail").read_text().split()


def letters(case: PipelineCase) -> list[int]:
    """The ids that the data source of the pipeline's own was given."""
    lines = (case.root / "letters" / "letters").read_text().splitlines()
    return sorted(json.loads(line)["id"] for line in lines)


def records(broker: KafkaBroker, topic: str) -> list[tuple[bytes | None, dict[str, Any]]]:
    """All records of a topic's one partition: key and value."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "test", "log_level": 0})
    try:
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)
        consumer.assign([TopicPartition(topic, 0, 0)])
        messages = consumer.consume(end, timeout=20)
    finally:
        consumer.close()
    return [(message.key(), json.loads(message.value())) for message in messages]


@contextmanager
def crash_in(case: PipelineCase, batch: int) -> Iterator[None]:
    """The function that writes to two places ends between the two of a batch."""
    (case.root / f"crash-{batch}").touch()
    yield
    (case.root / f"crash-{batch}").unlink()


def test_sinks_of_all_kinds(pipeline: Any, spark: SparkSession, shared_broker: KafkaBroker):
    """All sinks of one table get its rows in two updates; then some, and all, are filled by a full refresh, and one points elsewhere."""
    case = pipeline(LASTING + FUNCTIONS + KAFKA.replace("BROKER", shared_broker.bootstrap_servers))
    for topic in ("rows_of_sinks", "counts_of_sinks"):
        shared_broker.create_topic(topic, partitions=1)
    silver = case.table("retail_db.silver")
    spark.createDataFrame([(1, "x"), (2, "b")], "id INT, name STRING").write.format("delta").save(str(silver))
    land(case, FIRST, SECOND)
    first = case.update()
    assert first.state == "COMPLETED", first.error
    land(case, THIRD)
    with crash_in(case, 1):
        second = case.update()
        check_a_batch_that_failed_between_two_writes(case, second)
    check_delta_sinks(case, first)
    check_changed_rows_of_an_aggregation(case, second)
    check_tables_by_name_in_a_function(case, spark)
    check_kafka(case, first, second, shared_broker)
    check_the_manifest(case)
    assert (mail(case), letters(case)) == (["0:1", "0:2", "1:3"], [1, 2, 3])
    check_a_full_refresh_of_some(case, shared_broker)
    check_a_full_refresh_of_all(case)
    check_a_sink_that_points_elsewhere(case)
    check_a_data_source_that_is_not_registered(case)


def check_delta_sinks(case: PipelineCase, first: UpdateReport) -> None:
    """Rows of a table, and of a flow that runs once, go to a path and to a named table outside the pipeline's schema."""
    assert (first["to_out"].output_rows, first["backfill"].output_rows) == (2, 2)
    assert read_rows(case.root / "out") == [(1, "a", 1), (2, "bb", 2), (3, "a", 1)]
    assert case.rows("lake.shared") == [(1,), (2,), (3,), (100,), (101,)]


def check_a_batch_that_failed_between_two_writes(case: PipelineCase, report: UpdateReport) -> None:
    """Only its flow has failed, with the function's line; the first place has the batch, the second has not."""
    failed = {flow for flow, status in report.statuses.items() if status != "COMPLETED"}
    assert (failed, report.statuses["to_two_places"]) == ({"to_two_places"}, "FAILED")
    assert report.error is not None
    assert "between the two" in report.error.what
    assert case.line_of("raise RuntimeError") in report.error.where
    assert [len(read_rows(case.root / name)) for name in ("first", "second")] == [3, 2]


def check_changed_rows_of_an_aggregation(case: PipelineCase, second: UpdateReport) -> None:
    """update_flow hands a sink the rows that changed in each batch, and no others."""
    assert second["count_names"].output_rows == 1
    assert read_rows(case.root / "counts") == [("a", 2), ("bb", 1)]


def check_tables_by_name_in_a_function(case: PipelineCase, spark: SparkSession) -> None:
    """DeltaTable.forName finds tables of the warehouse and of the pipeline, which no catalog knows (features A034)."""
    assert case.rows("retail_db.silver") == [SECOND, THIRD]
    with pytest.raises(AnalysisException):
        DeltaTable.forName(spark, "retail_db.silver")


def check_kafka(case: PipelineCase, first: UpdateReport, second: UpdateReport, broker: KafkaBroker) -> None:
    """Rows of a table and changed rows of an aggregation reach their topics; lag, rows and positions are known."""
    assert (first["rows"].output_rows, first["counts_of_rows"].output_rows) == (2, 2)
    rows = second["rows"]
    assert (rows.input_rows, rows.output_rows, rows.backlog_records) == (1, 1, 0)
    assert [(key, value["id"]) for key, value in records(broker, "rows_of_sinks")] == [
        (b"a", 1),
        (b"bb", 2),
        (b"a", 3),
    ]
    changed = [(value["name"], value["count"]) for _, value in records(broker, "counts_of_sinks")]
    assert (sorted(changed[:2]), changed[2:]) == ([("a", 1), ("bb", 1)], [("a", 2)])
    state = case.checkpoint("to_rows_of_sinks", "rows").read_state()
    assert state is not None
    assert state.sink_id == "kafka:rows_of_sinks"


def check_the_manifest(case: PipelineCase) -> None:
    """Sinks are no tables; what they are, how flows write to them, and which flow goes where is known."""
    manifest = case.manifest()
    shared, post = manifest.dataset("shared"), manifest.dataset("post")
    assert shared.kind is post.kind is DatasetKind.SINK
    assert (shared.location, shared.sink_format, post.sink_format) == ("lake/shared", "delta", "letters")
    assert [entry.name for entry in manifest.tables] == ["bronze"]
    assert {flow.name: flow.output_mode for flow in manifest.flows}["count_names"] == "update"
    definitions = [e["details"]["flow_definition"] for e in case.events(event_type="flow_definition")]
    assert {definition["output_dataset"] for definition in definitions} == {"bronze", *SINKS}


def check_a_full_refresh_of_some(case: PipelineCase, broker: KafkaBroker) -> None:
    """Sinks that are named keep their rows, and their flows send everything again. A batch whose function had crashed comes again
    with the same number beside them, and each place has it once.
    """
    report = case.update(full_refresh=("shared", "to_rows_of_sinks"), tables=("two_places",))
    assert report.statuses == dict.fromkeys(("to_shared", "backfill", "rows", "to_two_places"), "COMPLETED")
    assert case.rows("lake.shared") == sorted(2 * [(1,), (2,), (3,), (100,), (101,)])
    assert len(read_rows(case.root / "out")) == 3
    assert len(records(broker, "rows_of_sinks")) == 6
    assert (report["to_two_places"].input_rows, report["to_two_places"].output_rows) == (1, 1)
    first, second = (read_rows(case.root / name, "id, name", "id") for name in ("first", "second"))
    assert first == second == [FIRST, SECOND, THIRD]


def check_a_full_refresh_of_all(case: PipelineCase) -> None:
    """No sink is cleared: a function's batches are numbered from 0 again, and rows that came before come a second time, as they do
    to a data source of the pipeline's own and to Delta.
    """
    case.rewrite(LASTING)
    before = mail(case)
    assert case.update(full_refresh_all=True).state == "COMPLETED"
    assert len(case.rows("lake.shared")) == 15
    assert len(read_rows(case.root / "out")) == 6
    assert case.rows("bronze") == [FIRST, SECOND, THIRD]
    again = mail(case)[len(before) :]
    assert [line.partition(":")[2] for line in again] == ["1", "2", "3"]
    assert again[0].startswith("0:")
    assert letters(case) == [1, 1, 2, 2, 3, 3]


def check_a_sink_that_points_elsewhere(case: PipelineCase) -> None:
    """It would miss what was sent before: the update stops and offers the ways out. Beside it a function that was given
    everything again is given nothing more.
    """
    case.rewrite(LASTING.replace("/../out", "/../elsewhere"))
    before = mail(case)
    report = case.update(tables=("out", "mailbox"))
    assert report.statuses == {"to_out": "FAILED", "to_mailbox": "COMPLETED"}
    assert isinstance(report.error, CheckpointMismatch)
    assert "--reset-checkpoint to_out" in report.error.remedy
    assert mail(case) == before
    assert case.update(reset_flows=("to_out",)).state == "COMPLETED"
    assert len(read_rows(case.root / "elsewhere")) == 3


def check_a_data_source_that_is_not_registered(case: PipelineCase) -> None:
    """A sink of such a format is refused, with what is missing."""
    case.rewrite(LASTING.replace("spark.dataSource.register(Letters)", ""))
    with pytest.raises(UnsupportedArgument, match="letters") as caught:
        case.update()
    assert "dataSource.register" in caught.value.remedy
