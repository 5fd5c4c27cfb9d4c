"""Sinks: Delta exactly once, Kafka at least once, a function with each batch; none is cleared by a full refresh."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from delta.tables import DeltaTable
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from tests.in_step import Share, Steps, in_step
from tests.pipeline_case import read_rows

from headwater.definitions.dataset import DatasetKind
from headwater.errors import CheckpointMismatch, UnsupportedArgument
from headwater_demo.kafka_broker import KafkaBroker
from headwater_spark.testing.local_session import forget_tables

BRONZE = """
@dp.table
def bronze():
    return spark.readStream.schema("id INT, name STRING").option("maxFilesPerTrigger", 1).json(LANDING)
"""
DELTA = (
    BRONZE
    + """
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
)


def row(number, name="x"):
    return {"id": number, "name": name}


def delta_sinks(case: Share) -> Steps:
    """Rows of a table, and of a flow that runs once, go to a path and to a named table outside the pipeline's schema."""
    case.rewrite(DELTA)
    case.land([row(1, "a"), row(2, "bb")])
    report = yield
    assert report.state == "COMPLETED", report.error
    assert (report["to_out"].output_rows, report["backfill"].output_rows) == (2, 2)
    case.land([row(3)])
    yield
    assert read_rows(case.root / case.own("out")) == [(1, "a", 1), (2, "bb", 2), (3, "x", 1)]
    assert case.rows("lake.shared") == [(1,), (2,), (3,), (100,), (101,)]
    manifest = case.manifest()
    entry = manifest.dataset(case.own("shared"))
    assert entry.kind is DatasetKind.SINK
    assert (entry.location, entry.sink_format) == (f"lake/{case.own('shared')}", "delta")
    own = [entry.name for entry in manifest.tables if entry.name.endswith(case.own_name)]
    assert own == [case.own("bronze")]
    lineage = [
        e["details"]["flow_definition"]["output_dataset"] for e in case.events(event_type="flow_definition")
    ]
    ours = {name for name in lineage if name.endswith(f"_{case.own_name}")}
    assert ours == {case.own(name) for name in ("out", "shared", "bronze")}


def test_a_full_refresh_sends_again_and_clears_nothing(pipeline):
    """Named or with all: the sink keeps its rows, and its flows send everything that the sources still hold. A sink that then
    points elsewhere would miss what was sent before: the update stops and offers the ways out.
    """
    case = pipeline(DELTA)
    case.land([row(1)])
    case.update()
    assert case.update(full_refresh=("shared",)).state == "COMPLETED"
    assert case.rows("lake.shared") == [(1,), (1,), (100,), (100,), (101,), (101,)]
    assert len(read_rows(case.root / "out")) == 1
    assert case.update(full_refresh_all=True).state == "COMPLETED"
    assert len(case.rows("lake.shared")) == 9
    assert len(read_rows(case.root / "out")) == 2
    assert case.rows("bronze") == [(1, "x")]
    case.rewrite(DELTA.replace("/../out", "/../elsewhere"))
    report = case.update()
    assert isinstance(report.error, CheckpointMismatch)
    assert "--reset-checkpoint to_out" in report.error.remedy
    assert case.update(reset_flows=("to_out",)).state == "COMPLETED"
    assert len(read_rows(case.root / "elsewhere")) == 1


FUNCTION = (
    BRONZE
    + """
import pathlib

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
def send():
    return spark.readStream.table("bronze").withColumn("u", F.expr("uuid()"))
"""
)


def a_function_gets_each_batch(case: Share) -> Steps:
    """A crash between two writes of a batch: the batch comes again with the same number, and each place has it once."""
    case.rewrite(FUNCTION)
    (case.root / "crash-1").touch()
    case.land([row(1)])
    assert (yield).state == "COMPLETED"
    case.land([row(2)])
    report = yield
    assert report.statuses == {"bronze": "COMPLETED", "send": "FAILED"}
    assert "between the two" in report.error.what
    assert case.line_of("raise RuntimeError") in report.error.where
    assert [len(read_rows(case.root / name)) for name in ("first", "second")] == [2, 1]
    (case.root / "crash-1").unlink()
    report = yield
    assert report.state == "COMPLETED"
    assert (report["send"].input_rows, report["send"].output_rows) == (1, 1)
    first, second = (read_rows(case.root / name, "id, name", "id") for name in ("first", "second"))
    assert first == second == [(1, "x"), (2, "x")]


UPDATES = (
    BRONZE
    + """
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
"""
)


MAILBOX = (
    BRONZE
    + """
import pathlib

@dp.foreach_batch_sink
def mailbox(df, batch_id):
    with pathlib.Path(LANDING).with_name("mail").open("a") as mail:
        mail.writelines(f"{batch_id}:{row.id}\\n" for row in df.collect())

@dp.append_flow(target="mailbox")
def send():
    return dp.read_stream("bronze")
"""
)


def test_a_full_refresh_gives_a_function_everything_again(pipeline):
    """Batches are numbered from 0 again, and rows that came before come a second time: the function clears what is behind it."""
    case = pipeline(MAILBOX)
    mail = case.root / "mail"
    case.land([row(1)])
    case.update()
    case.land([row(2)])
    case.update()
    assert mail.read_text().split() == ["0:1", "1:2"]
    assert case.update(full_refresh=("mailbox",)).state == "COMPLETED"
    again = mail.read_text().split()[2:]
    assert [line.partition(":")[2] for line in again] == ["1", "2"]
    assert again[0].startswith("0:")
    assert case.update().state == "COMPLETED"
    assert len(mail.read_text().split()) == 4
    assert case.rows("bronze") == [(1, "x"), (2, "x")]


OF_ONES_OWN = (
    BRONZE
    + """
import json
import pathlib
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
dp.create_sink("out", "letters", {"folder": LANDING + "/../letters"})


@dp.append_flow(target="out")
def to_out():
    return dp.read_stream("bronze")
"""
)


def test_a_data_source_of_ones_own_is_a_sink(pipeline):
    """A Python data source that the pipeline registers gets each row once, new ones in the next update, and all again on a full refresh."""
    case = pipeline(OF_ONES_OWN)
    letters = case.root / "letters" / "letters"
    case.land([row(1, "a"), row(2, "b")])
    report = case.update()
    assert report.state == "COMPLETED", report.error
    case.land([row(3, "c")])
    assert case.update().state == "COMPLETED"
    ids = [json.loads(line)["id"] for line in letters.read_text().split("\n") if line]
    assert sorted(ids) == [1, 2, 3]
    assert case.update(full_refresh=("out",)).state == "COMPLETED"
    assert len(letters.read_text().split("\n")) == 7
    entry = case.manifest().dataset("out")
    assert (entry.kind, entry.sink_format) == (DatasetKind.SINK, "letters")
    case.rewrite(OF_ONES_OWN.replace("spark.dataSource.register(Letters)", ""))
    with pytest.raises(UnsupportedArgument, match="letters") as caught:
        case.update()
    assert "dataSource.register" in caught.value.remedy


def changed_rows_of_an_aggregation(case: Share) -> Steps:
    """update_flow hands a sink the rows that changed in each batch, and no others."""
    case.rewrite(UPDATES)
    case.land([row(1, "a"), row(2, "b")])
    yield
    case.land([row(3, "b")])
    report = yield
    assert report.state == "COMPLETED", report.error
    assert report["count_names"].output_rows == 1
    assert read_rows(case.root / case.own("counts")) == [("a", 1), ("b", 2)]
    assert {flow.name: flow.output_mode for flow in case.manifest().flows}[
        case.own("count_names")
    ] == "update"


BY_NAME = (
    BRONZE
    + """
from delta.tables import DeltaTable

@dp.foreach_batch_sink
def upsert(micro_batch, batch_id):
    (DeltaTable.forName(spark, "retail_db.silver").alias("dt")
        .merge(source=micro_batch.alias("sdf"), condition="sdf.id = dt.id")
        .whenMatchedDelete(condition="sdf.name = 'DELETE'")
        .whenMatchedUpdate(set={"name": "sdf.name"})
        .whenNotMatchedInsert(values={"id": "sdf.id", "name": "sdf.name"})
        .execute())
    DeltaTable.forName(micro_batch.sparkSession, "bronze").toDF().count()

@dp.append_flow(target="upsert")
def send():
    return spark.readStream.table("bronze")
"""
)


def tables_by_name_in_a_function(case: Share) -> Steps:
    """DeltaTable.forName finds tables of the warehouse and of the pipeline, which no catalog knows (features A034)."""
    case.rewrite(BY_NAME)
    spark = SparkSession.active()
    silver = case.table("retail_db.silver")
    spark.createDataFrame([(1, "a"), (2, "b")], "id INT, name STRING").write.format("delta").save(str(silver))
    case.land([row(1, "DELETE"), row(2, "B"), row(3, "c")])
    report = yield
    assert report.state == "COMPLETED", report.error
    assert case.rows("retail_db.silver") == [(2, "B"), (3, "c")]
    with pytest.raises(AnalysisException):
        DeltaTable.forName(spark, "retail_db.silver")


def records(broker: KafkaBroker, topic: str) -> list[tuple[bytes | None, dict]]:
    """All records of a topic's one partition: key and value."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "test", "log_level": 0})
    try:
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)
        consumer.assign([TopicPartition(topic, 0, 0)])
        messages = consumer.consume(end, timeout=20)
    finally:
        consumer.close()
    return [(message.key(), json.loads(message.value())) for message in messages]


def a_kafka_sink(case: Share, shared_broker: KafkaBroker) -> Steps:
    """Rows of a table and changed rows of an aggregation reach their topics; lag, rows and positions are known."""
    case.rewrite(
        BRONZE
        + f"""
for topic in ("rows", "counts"):
    dp.create_sink("to_" + topic, "kafka", {{"kafka.bootstrap.servers": "{shared_broker.bootstrap_servers}", "topic": topic}})

@dp.append_flow(target="to_rows")
def rows():
    return dp.read_stream("bronze").select(F.col("name").alias("key"), F.to_json(F.struct("*")).alias("value"))

@dp.update_flow(target="to_counts")
def counts():
    return dp.read_stream("bronze").groupBy("name").count().select(F.to_json(F.struct("*")).alias("value"))
"""
    )
    rows, counts = case.own("rows"), case.own("counts")
    for topic in (rows, counts):
        shared_broker.create_topic(topic, partitions=1)
    case.land([row(1, "a"), row(2, "a")])
    report = yield
    assert report.state == "COMPLETED", report.error
    assert (report["rows"].output_rows, report["counts"].output_rows) == (2, 1)
    case.land([row(3, "a")])
    report = yield
    assert (report["rows"].input_rows, report["rows"].output_rows, report["rows"].backlog_records) == (
        1,
        1,
        0,
    )
    assert [(key, value["id"]) for key, value in records(shared_broker, rows)] == [
        (b"a", 1),
        (b"a", 2),
        (b"a", 3),
    ]
    assert [value["count"] for _, value in records(shared_broker, counts)] == [2, 3]
    assert case.checkpoint("to_rows", "rows").read_state().sink_id == f"kafka:{rows}"
    assert (yield {"full_refresh": ("to_rows",)}).state == "COMPLETED"
    assert len(records(shared_broker, rows)) == 6


def test_sinks_of_all_kinds(tmp_path: Path, spark: SparkSession, shared_broker: KafkaBroker):
    """Each scenario holds what its docstring says."""

    def to_kafka(case: Share) -> Steps:
        """Rows and changed rows reach their topics."""
        yield from a_kafka_sink(case, shared_broker)

    names = ("bronze", "out", "to_out", "shared", "to_shared", "backfill", "two_places", "send", "counts", "count_names", "upsert",
             "rows", "to_rows", "to_counts")  # fmt: skip
    scenarios = [
        delta_sinks,
        a_function_gets_each_batch,
        changed_rows_of_an_aggregation,
        tables_by_name_in_a_function,
        to_kafka,
    ]
    in_step(tmp_path, names, scenarios)
    forget_tables(spark)
