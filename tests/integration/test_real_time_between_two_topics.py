"""Flows from one topic to another in Spark's real-time mode, and those for which Spark has none."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.continuous_driver import run_until, until
from tests.pipeline_case import SMALL_QUERIES, SPARK, PipelineCase, spec_of

from headwater.checkpoints.offsets import last_committed_batch
from headwater.delta_log.table_history import table_exists
from headwater.graph.conditions import RealTimeNotPermitted
from headwater_demo.kafka_broker import KafkaBroker
from headwater_spark.plans.session_settings import session_settings

ONE_PARTITION = {"spark.sql.shuffle.partitions": "1"}
SPEC = "trigger: continuous\n" + spec_of({**SPARK, **SMALL_QUERIES, **ONE_PARTITION})
TOPICS = """
def topic(name):
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "BROKER").option("subscribe", name)
    return source.option("startingOffsets", "earliest").load()

dp.create_sink("answers", "kafka", {"kafka.bootstrap.servers": "BROKER", "topic": "answers"})
"""
FAST = """
@dp.update_flow(target="answers", spark_conf={"pipelines.trigger": "RealTime", "pipelines.trigger.interval": "8 seconds"})
def answer():
    text = F.upper(F.col("value").cast("string"))
    return topic("questions").where("length(value) > 1").select("key", text.alias("value"))

@dp.table
def kept():
    return topic("questions").select(F.col("value").cast("string").alias("text"))
"""


def received(broker: KafkaBroker) -> list[str]:
    """Every message of the topic."""
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "of-the-test", "log_level": 0}
    )
    try:
        place = TopicPartition("answers", 0, 0)
        _, end = consumer.get_watermark_offsets(place, 10)
        consumer.assign([place])
        return [(message.value() or b"").decode() for message in consumer.consume(end, 10)]
    finally:
        consumer.close()


@pytest.mark.timeout(300)
def test_messages_go_out_before_their_batch_ends(tmp_path, spark, shared_broker: KafkaBroker):
    """A message is answered at once, while the batch goes on for seconds, beside a table that is filled in batches; a stop waits for the
    position, so that an update that ends, from the same checkpoint, answers what came since and nothing twice.
    """
    for name in ("questions", "answers"):
        shared_broker.create_topic(name, partitions=1)
    source = TOPICS.replace("BROKER", shared_broker.bootstrap_servers) + FAST
    case = PipelineCase(tmp_path, source, spec=SPEC)
    producer = Producer({"bootstrap.servers": shared_broker.bootstrap_servers})
    folder = case.checkpoint("answers", "answer").epoch_folder(0)
    sent: list[str] = []
    at_once: list[bool] = []

    def send(text: str) -> None:
        sent.append(text.upper())
        producer.produce("questions", text.encode())
        assert producer.flush(10) == 0

    def answered() -> bool:
        return received(shared_broker) == sent

    def kept_all() -> bool:
        return table_exists(case.table("kept")) and len(case.rows("kept", order="text")) == 5

    def ask() -> None:
        send("the first")
        until(answered, "the first answer")
        for number in range(4):
            committed, began = last_committed_batch(folder), time.monotonic()
            send(f"number {number}")
            until(answered, f"the answer to number {number}", 30)
            at_once.append(last_committed_batch(folder) == committed and time.monotonic() - began < 10)
        until(kept_all, "the table beside it")

    with session_settings(spark, ONE_PARTITION):
        code, report = run_until(case, ask)
    assert (code, report["state"]) == (1, "CANCELED"), report
    # A batch may have ended just then, for once.
    assert at_once.count(True) >= 3
    assert last_committed_batch(folder) is not None

    send("while it stood")
    with session_settings(spark, ONE_PARTITION):
        code, report = case.run("--no-continuous")
    assert (code, report["state"]) == (0, "COMPLETED"), report
    assert received(shared_broker) == sent
    assert len(case.rows("kept", order="text")) == len(sent)
    records = [r["details"]["flow_progress"]["metrics"] for r in case.events(flow="answer", level="METRICS")]
    assert sum(metrics["num_input_rows"] for metrics in records) == len(sent)


REFUSED = {
    "append mode": '@dp.append_flow(target="answers", spark_conf=RT)\ndef f():\n    return topic("q").select("value")',
    "the operator Aggregate": '@dp.update_flow(target="answers", spark_conf=RT)\ndef f():\n    return topic("q").groupBy("value").count().select("value")',
    "functions of Python": '@dp.update_flow(target="answers", spark_conf=RT)\ndef f():\n    return topic("q").select(F.udf(lambda v: v, "binary")("value").alias("value"))',
    "maxOffsetsPerTrigger": '@dp.update_flow(target="answers", spark_conf=RT)\ndef f():\n    return spark.readStream.format("kafka").option("kafka.bootstrap.servers", "BROKER").option("subscribe", "q").option("maxOffsetsPerTrigger", 5).load().select("value")',
    "reads json": '@dp.update_flow(target="answers", spark_conf=RT)\ndef f():\n    return spark.readStream.schema("value STRING").json(LANDING)',
    "reads the table 't'": '@dp.table\ndef t():\n    return topic("q")\n\n@dp.update_flow(target="answers", spark_conf=RT)\ndef f():\n    return dp.read_stream("t").select("value")',
    "twice": '@dp.update_flow(target="answers", spark_conf=RT)\ndef f():\n    return topic("q").select("value").union(topic("q").select("value"))',
    "a table": '@dp.append_flow(target="answers")\ndef g():\n    return topic("q").select("value")\n\n@dp.table(spark_conf=RT)\ndef t():\n    return topic("q").select("value")',
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_spark_does_not_permit_is_refused_by_name(tmp_path, spark, reason):
    """Before anything runs, with the reason and the flow's line: Spark itself would say it when the first batch has begun."""
    source = TOPICS + 'RT = {"pipelines.trigger": "RealTime"}\n' + REFUSED[reason]
    case = PipelineCase(
        tmp_path, source.replace("BROKER", "127.0.0.1:9"), spec=f"trigger: continuous\nspark: {SPARK}\n"
    )
    with pytest.raises(RealTimeNotPermitted) as caught:
        case.manifest()
    assert reason.replace("append mode", "update mode") in f"{caught.value.what} {caught.value.remedy}"
    assert caught.value.where
    assert case.nothing_written()
