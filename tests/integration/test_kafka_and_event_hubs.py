"""Kafka's options as pipelines in use spell them, and Event Hubs' through the same protocol, on a real broker."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.pipeline_case import PipelineCase
from tests.shared_broker import KEY, connection_string

from headwater.graph.manifest import FILE_NAME, read_manifest
from headwater.kafka.offsets import BrokerTopics
from headwater.metrics.backlog import Backlog
from headwater.metrics.lag import flow_lag
from headwater_demo.kafka_broker import KafkaBroker

DAY = datetime(2025, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def broker(shared_broker: KafkaBroker) -> KafkaBroker:
    """A broker with filled topics, and a second address that asks for the login of an event hub."""
    shared_broker.create_topic("events", partitions=2)
    shared_broker.create_topic("events-more")
    shared_broker.create_topic("clicks")
    producer = Producer({"bootstrap.servers": shared_broker.bootstrap_servers, "log_level": 0})
    for number in range(10):
        millis = int((DAY + timedelta(hours=number)).timestamp() * 1000)
        headers = [("trace", f"t{number}".encode())]
        producer.produce("events", str(number), partition=number % 2, timestamp=millis, headers=headers)
    producer.produce("events-more", "100")
    for number in range(3):
        producer.produce("clicks", json.dumps({"n": number}), key="k", headers=[("source", b"web")])
    assert producer.flush(20) == 0
    return shared_broker


def reading(broker: KafkaBroker, *options: str, value: str = "value") -> str:
    """A stream of values from Kafka, read with options, as text of a source."""
    chain = "".join(f".option({option})" for option in options)
    server = f'.option("kafka.bootstrap.servers", "{broker.bootstrap_servers}")'
    return (
        f'spark.readStream.format("kafka"){server}{chain}.load().selectExpr("CAST({value} AS STRING) AS v")'
    )


ALL = '"startingOffsets", "earliest"'
EVENTS = '"subscribe", "events"'


def test_options_of_kafka(pipeline, broker: KafkaBroker):
    """Subscriptions and starting points in all their forms, limits, and headers: each gives the records that it should."""
    offsets = json.dumps(json.dumps({"events": {"0": 3, "1": -2}}))
    by_time = json.dumps(json.dumps({"events": {"0": "2025-01-01 08:00:00", "1": "2025-01-01 09:00:00"}}))
    assign = json.dumps(json.dumps({"events": [1]}))
    forms = {
        "everything": reading(broker, EVENTS, ALL),
        "from_latest": reading(broker, EVENTS, '"startingOffsets", "latest"'),
        "by_offsets": reading(broker, EVENTS, f'"startingOffsets", {offsets}'),
        "by_text_time": reading(broker, EVENTS, '"startingTimestamp", "2025-01-01 06:00:00"'),
        "by_time_of_each": reading(broker, EVENTS, f'"startingOffsetsByTimestamp", {by_time}'),
        "several": reading(broker, '"subscribe", "events,events-more"', ALL),
        "pattern": reading(broker, '"subscribePattern", "events.*"', ALL),
        "assigned": reading(broker, f'"assign", {assign}', ALL),
        "headers": reading(broker, EVENTS, ALL, '"includeHeaders", "true"', value="headers[0].value"),
    }
    # One query for all of them: each takes a second of its own.
    named = [f'{text}.select(F.lit("{name}").alias("form"), "v")' for name, text in forms.items()]
    union = "".join(f"\n    .union({text})" for text in named[1:])
    limited = reading(broker, EVENTS, ALL, '"maxOffsetsPerTrigger", "4"')
    case: PipelineCase = pipeline(
        f"@dp.table\ndef forms():\n    return ({named[0]}{union})\n\n@dp.table\ndef limited():\n    return {limited}\n"
    )
    report = case.update()
    assert report.state == "COMPLETED", report.error
    rows = case.rows("forms", "form, v")
    numbers = [str(number) for number in range(10)]
    assert {name: [v for form, v in rows if form == name] for name in forms} == {
        "everything": numbers,
        "from_latest": [],
        "by_offsets": ["1", "3", "5", "6", "7", "8", "9"],
        "by_text_time": ["6", "7", "8", "9"],
        "by_time_of_each": ["8", "9"],
        "several": sorted([*numbers, "100"]),
        "pattern": sorted([*numbers, "100"]),
        "assigned": ["1", "3", "5", "7", "9"],
        "headers": [f"t{number}" for number in range(10)],
    }
    assert case.rows("limited") == [(number,) for number in numbers]
    assert report["limited"].batches == 3


HUB = """
@dp.table
def clicks():
    text = dbutils.secrets.get("eventhub", "connection-string")
    position = '{"offset": "-1", "seqNo": -1, "enqueuedTime": null, "isInclusive": true}'
    return (
        spark.readStream.format("eventhubs")
        .options(**{"eventhubs.connectionString": text, "eventhubs.consumerGroup": "lake",
                    "eventhubs.startingPosition": position})
        .load()
    )

@dp.materialized_view
def totals():
    rows = spark.read.format("eventhubs").option("eventhubs.connectionString", dbutils.secrets.get("eventhub", "connection-string"))
    return rows.load().selectExpr("count(*) AS n", "max(properties['source']) AS source")
"""


def stored_text(folder: Path) -> str:
    """All that an update wrote outside its tables' data files."""
    texts = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    return b"\n".join(texts).decode("utf-8", "replace")


def clicks_lag(case: PipelineCase) -> Backlog:
    """How far the flow is behind the hub, asked without Spark."""
    project = case.project()
    manifest = read_manifest(project.state_folder / FILE_NAME)
    assert manifest is not None
    return next(flow_lag(project, flow).backlog for flow in manifest.flows if flow.name == "clicks")


def test_an_event_hub(pipeline, broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch):
    """The connector's options log in at the hub's Kafka endpoint, rows have its columns, and the key is written nowhere. With a login in
    the spec and its secret in the environment the lag is known; else it says what is missing.
    """
    secret = "HEADWATER_SECRET_EVENTHUB_CONNECTION_STRING"
    monkeypatch.setenv(secret, connection_string(broker.login_port))
    case: PipelineCase = pipeline(HUB)
    report = case.update()
    assert report.state == "COMPLETED", report.error
    assert case.columns("clicks") == [
        "body", "partition", "offset", "sequenceNumber", "enqueuedTime", "publisher", "partitionKey", "properties",
        "systemProperties",
    ]  # fmt: skip
    select = 'CAST(body AS STRING) AS body, "offset" AS o, "sequenceNumber" AS s, "partitionKey" AS k'
    assert [row[1:] for row in case.rows("clicks", select, "2")] == [(str(n), n, "k") for n in range(3)]
    assert case.rows("totals") == [(3, "web")]
    done = case.events(flow="clicks", event_type="flow_progress")[-1]["details"]["flow_progress"]
    assert "requires a login" in done["metrics"]["backlog_unknown"]
    login = f"{{protocol: SASL_PLAINTEXT, username: $ConnectionString, password_env: {secret}}}"
    spec = case.folder / "pipeline.yml"
    spec.write_text(f'{spec.read_text()}brokers:\n  "{broker.login_servers}": {login}\n')
    assert case.update()["clicks"].output_rows == 0
    assert KEY not in case.manifest().to_json()
    assert clicks_lag(case).records == 0
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    producer.produce("clicks", "{}")
    assert producer.flush(20) == 0
    assert clicks_lag(case).records == 1
    assert KEY not in stored_text(case.storage)
    monkeypatch.delenv(secret)
    assert f"the environment variable {secret} is not set" in (clicks_lag(case).unknown or "")
    monkeypatch.setenv(secret, "wrong")
    # A refused client asks again until its time is up.
    monkeypatch.setitem(BrokerTopics.__init__.__kwdefaults__, "timeout", 1.0)
    assert clicks_lag(case).unknown


def test_a_wrong_key(pipeline, broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch):
    """The broker really asks: a wrong key fails the flow, and no key is in the error or the event log."""
    wrong = connection_string(broker.login_port).replace(KEY, "WRONGKEY")
    monkeypatch.setenv("HEADWATER_SECRET_EVENTHUB_CONNECTION_STRING", wrong)
    case: PipelineCase = pipeline(HUB.partition("@dp.materialized_view")[0])
    report = case.update()
    assert report.state == "FAILED"
    assert "uthentication" in str(report.error)
    assert "WRONGKEY" not in str(report.error)
    assert "WRONGKEY" not in stored_text(case.storage)
