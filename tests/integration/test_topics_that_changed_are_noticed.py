"""A topic that was made anew, or that lost what was not read, is named before a message is read; the remedy goes on."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.pipeline_case import PipelineCase
from tests.prepared_pipeline import conditions_of

from headwater.doctor.flow_cases import named_case
from headwater.doctor.repair_plan import RepairOptions
from headwater.doctor.repairs import plan_repair
from headwater.doctor.surgery import operate
from headwater.preflight.damage import Repair
from headwater_demo.kafka_broker import KafkaBroker

TOPIC, KEPT = "orders-that-change", "orders-that-stay"


@pytest.fixture
def broker(shared_broker: KafkaBroker) -> Iterator[KafkaBroker]:
    """A broker that may be killed: it is there again for whoever comes next."""
    yield shared_broker
    if not shared_broker.is_running:
        shared_broker.start()


def with_five(broker: KafkaBroker, topic: str) -> None:
    """Make a topic, with five messages."""
    broker.create_topic(topic)
    produce(broker, topic, range(5))


def produce(broker: KafkaBroker, topic: str, numbers: range) -> None:
    """Send messages, all acknowledged."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    for number in numbers:
        producer.produce(topic, str(number))
    assert producer.flush(20) == 0


def begin_anew(case: PipelineCase) -> str:
    """Carry out the remedy, and give what it said would double."""
    flow = named_case(case.project(), "orders")
    return operate(flow, plan_repair(flow, Repair.NEW_EPOCH, RepairOptions(from_start=True))).plan.doubled


def values(case: PipelineCase) -> Counter[int]:
    """What is in the table."""
    return Counter(int(row[0]) for row in case.rows("orders"))


def test_made_anew_and_aged_out(pipeline, shared_broker: KafkaBroker):
    """A topic that was deleted is missed; another one under its name is refused though its offsets go on; so are messages
    that have left.
    """
    with_five(shared_broker, TOPIC)
    case: PipelineCase = pipeline(
        f"""
@dp.table
def orders():
    rows = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "{shared_broker.bootstrap_servers}")
    rows = rows.option("subscribe", "{TOPIC}").option("startingOffsets", "earliest").load()
    return rows.selectExpr("CAST(value AS STRING) AS v")
"""
    )
    assert case.update().state == "COMPLETED"
    assert conditions_of(case, "orders") == []
    state = case.checkpoint("orders").read_state()
    assert state is not None
    assert state.sources[0]["topics"][TOPIC]
    admin = AdminClient({"bootstrap.servers": shared_broker.bootstrap_servers, "log_level": 0})
    admin.delete_topics([TOPIC])[TOPIC].result(10)
    ends = time.monotonic() + 20
    while conditions_of(case, "orders") != [("SOURCE_GONE", False)]:
        assert time.monotonic() < ends
        time.sleep(0.1)
    shared_broker.create_topic(TOPIC)
    produce(shared_broker, TOPIC, range(100, 110))
    assert conditions_of(case, "orders") == [("SOURCE_REPLACED", False)]
    report = case.update()
    assert (report.state, report.error.condition) == ("FAILED", "SOURCE_REPLACED")  # type: ignore[union-attr]
    begin_anew(case)
    assert case.update().state == "COMPLETED"
    assert values(case) == Counter([*range(5), *range(100, 110)])
    produce(shared_broker, TOPIC, range(200, 206))
    low = TopicPartition(TOPIC, 0, 13)
    next(iter(admin.delete_records([low]).values())).result(10)
    assert conditions_of(case, "orders") == [("SOURCE_AGED_OUT", False)]
    begin_anew(case)
    assert case.update().state == "COMPLETED"
    assert values(case) == Counter([*range(5), *range(100, 110), *range(203, 206)])


def test_a_broker_that_is_killed_and_comes_back(pipeline, broker: KafkaBroker):
    """Away before a start or in the middle of a batch, the flow fails as one that another try may help, names the broker or
    the wait, and has each message once when the broker is back: what that acknowledged is there after the kill.
    """
    with_five(broker, KEPT)
    case: PipelineCase = pipeline(
        f"""
import pathlib, time
GATE = LANDING + "/gate"

@F.udf("string")
def held(value):
    pathlib.Path(GATE + ".waits").touch()
    while not pathlib.Path(GATE).exists():
        time.sleep(0.05)
    return value

@dp.table
def orders():
    rows = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "{broker.bootstrap_servers}")
    rows = rows.option("subscribe", "{KEPT}").option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", 3)
    rows = rows.option("kafkaConsumer.pollTimeoutMs", 2000).option("fetchOffset.numRetries", 1)
    rows = rows.option("kafka.request.timeout.ms", 2000).option("kafka.default.api.timeout.ms", 3000).load()
    return rows.select(held(F.expr("CAST(value AS STRING)")).alias("v"))
"""
    )
    gate = case.landing / "gate"
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(case.update)
        while not gate.with_name("gate.waits").exists():
            assert not running.done(), running.result().error
            time.sleep(0.05)
        broker.kill()
        gate.touch()
        report = running.result(90)
    assert report.state == "FAILED"
    assert (report.error.condition, report.error.transient) == ("FLOW_INTERRUPTED", True)  # type: ignore[union-attr]
    report = case.update()
    assert (report.error.condition, report.error.transient) == ("SOURCE_UNREACHABLE", True)  # type: ignore[union-attr]
    assert broker.bootstrap_servers in str(report.error)
    broker.start()
    assert case.update().state == "COMPLETED"
    assert values(case) == Counter(range(5))
