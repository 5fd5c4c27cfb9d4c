"""Streams of Kinesis, on an emulator of it (moto); the real service was never asked."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kinesis_emulator import REGION, KinesisEmulator, kinesis_emulator
from tests.pipeline_case import PipelineCase

from headwater.errors import FlowFailed, SourceNotFound, SourcePositionLost, SourceUnreachable
from headwater.metrics.lag import pipeline_lag
from headwater.updates.news import has_news

KEY, SECRET = "AKIAOFATEST", "s3cr3t/of/a+test"


@pytest.fixture(scope="module")
def kinesis() -> Iterator[KinesisEmulator]:
    """An emulator for the module."""
    with kinesis_emulator() as running:
        yield running


def reading(
    kinesis: KinesisEmulator,
    table: str,
    *more: str,
    stream: str = "",
    rule: str = "",
    position: str = "trim_horizon",
) -> str:
    """A streaming table over the stream of its name, or another."""
    options = {
        "streamName": stream or table,
        "region": REGION,
        "endpoint": kinesis.endpoint,
        "initialPosition": position,
        **dict(text.split("=", 1) for text in more),
    }
    return (
        f"@dp.table\n{rule}def {table}():\n    rows = spark.readStream.format('kinesis').options(**{options!r}).load()\n"
        "    return rows.withColumn('v', F.col('data').cast('string').cast('int'))\n"
    )


def values(case: PipelineCase, table: str) -> list[int]:
    """What a table holds."""
    return sorted(row[0] for row in case.rows(table, "v", "1"))


def batch_rows(case: PipelineCase, table: str) -> list[int]:
    """Rows by batch, without the empty ones."""
    events = sorted(case.events(flow=table, level="METRICS"), key=lambda event: event["origin"]["batch_id"])
    counts = [event["details"]["flow_progress"]["metrics"].get("num_output_rows", 0) for event in events]
    return [rows for rows in counts if rows]


def delays(case: PipelineCase) -> dict[str, Any]:
    """How far each flow is behind."""
    return {lag.flow: lag.backlog for lag in pipeline_lag(case.project(), case.manifest())}


def pipeline_of_all(kinesis: KinesisEmulator, timed: str, *, rule: str = "") -> str:
    """Six tables over streams of their own; `many` reads two."""
    return "".join(
        [
            reading(kinesis, "orders"),
            reading(kinesis, "clicks", position="latest"),
            reading(kinesis, "timed", position=timed),
            reading(kinesis, "many", "maxRecordsPerTrigger=6", "maxRecordsPerFetch=3", stream="many,few"),
            reading(kinesis, "again", rule=rule),
            reading(kinesis, "grown"),
        ]
    )


def test_every_record_once(pipeline, kinesis: KinesisEmulator):
    """Updates take what is new in all shards, and where nothing is, there is no news. `latest` leaves out what was there before
    the first update, at_timestamp what came before then; a limit bounds each batch; a batch that failed has the same records when
    it comes again; a shard that was split is read to its end, then its children.
    """
    for stream, shards in {
        "orders": 3,
        "clicks": 2,
        "timed": 1,
        "many": 2,
        "few": 1,
        "again": 2,
        "grown": 1,
    }.items():
        kinesis.make(stream, shards=shards)
    for stream, first in {"orders": 20, "clicks": 5, "timed": 3, "many": 20, "again": 10, "grown": 4}.items():
        kinesis.put(stream, range(first))
    kinesis.put("few", range(20, 23))
    time.sleep(1.1)
    at = time.time()
    kinesis.put("timed", range(3, 6))
    shown = time.strftime("%m/%d/%Y %H:%M:%S GMT", time.gmtime(at))
    timed = json.dumps({"at_timestamp": shown, "format": "MM/dd/yyyy HH:mm:ss ZZZ"})
    case: PipelineCase = pipeline(
        pipeline_of_all(kinesis, timed, rule='@dp.expect_or_fail("small", "v < 5")\n')
    )

    report = case.update()
    assert {flow for flow, status in report.statuses.items() if status != "COMPLETED"} == {"again"}, (
        report.error
    )
    assert values(case, "orders") == list(range(20))
    assert case.columns("orders") == [
        "partitionKey", "data", "stream", "shardId", "sequenceNumber", "approximateArrivalTimestamp", "v",
    ]  # fmt: skip
    keys, streams, shard_ids = zip(*case.rows("orders", '"partitionKey", stream, "shardId"'), strict=True)
    assert sorted(map(int, keys)) == list(range(20))
    assert set(streams) == {"orders"}
    assert len(set(shard_ids)) == 3
    assert report["clicks"].output_rows == 0
    assert values(case, "timed") == [3, 4, 5]
    assert values(case, "many") == list(range(23))
    assert len(batch_rows(case, "many")) >= 4
    assert max(batch_rows(case, "many")) <= 6
    assert report["grown"].output_rows == 4

    kinesis.put("orders", range(20, 25))
    kinesis.put("clicks", range(5, 9))
    kinesis.put("again", range(10, 14))
    kinesis.put("grown", range(4, 6))
    kinesis.split("grown", "shardId-000000000000")
    kinesis.put("grown", range(6, 16))
    case.rewrite(pipeline_of_all(kinesis, timed))
    time.sleep(0.2)
    lag = delays(case)["orders"]
    assert lag.unknown is None
    assert 0.2 <= (lag.seconds or 0) < 60
    assert has_news(case.project()).moved

    report = case.update()
    assert report.state == "COMPLETED", report.error
    assert report["orders"].output_rows == 5
    assert values(case, "orders") == list(range(25))
    assert delays(case)["orders"].seconds == 0
    assert report["clicks"].output_rows == 4
    assert values(case, "clicks") == [5, 6, 7, 8]
    assert values(case, "again") == list(range(14))
    assert batch_rows(case, "again") == [10, 4]
    assert values(case, "grown") == list(range(16))
    assert batch_rows(case, "grown") == [4, 2, 10]
    assert has_news(case.project()).reasons == ()

    kinesis.put("grown", [16])
    report = case.update(tables=("grown",))
    assert report["grown"].output_rows == 1


def stored_text(folder: Path) -> str:
    """All that an update wrote."""
    texts = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    return b"\n".join(texts).decode("utf-8", "replace")


def test_what_ends_a_stream_is_said(pipeline, kinesis: KinesisEmulator):
    """A stream that is not there, was made anew, can't be reached, or has records of the producer library: each by name, and of
    a batch with such records nothing is written. Keys that are given with a read let it read, and are in no file, plan or error;
    the lag says that it can't know.
    """
    kinesis.make("packed")
    kinesis.put("packed", [b"\xf3\x89\x9a\xc2rest"])
    kinesis.make("locked")
    kinesis.put("locked", range(3))
    keys = (f"awsAccessKey={KEY}", f"awsSecretKey={SECRET}")
    absent = reading(kinesis, "absent")
    case: PipelineCase = pipeline(absent + reading(kinesis, "packed") + reading(kinesis, "locked", *keys))
    report = case.update()
    error = report["absent"].error
    assert isinstance(error, SourceNotFound)
    assert "absent" in error.what
    assert error.remedy
    error = report["packed"].error
    assert isinstance(error, FlowFailed)
    assert "producer library" in error.what
    assert "AggregationEnabled" in error.remedy
    assert report["locked"].output_rows == 3
    with case.resolved() as resolved:
        frame = resolved.evaluation.frames["locked"]
        plan = str(frame._jdf.queryExecution().toString())
        shown = resolved.manifest.to_json()
    for text in (plan, shown, stored_text(case.storage)):
        assert KEY not in text
        assert SECRET not in text
    lag = delays(case)["locked"]
    assert lag.unknown
    assert lag.moved is None
    assert has_news(case.project()).moved

    case.rewrite(absent)
    kinesis.make("absent")
    kinesis.put("absent", [1])
    assert case.update().state == "COMPLETED"
    kinesis.client.delete_stream(StreamName="absent")
    time.sleep(1.1)
    kinesis.make("absent")
    kinesis.put("absent", [2])
    error = case.update().error
    assert isinstance(error, SourcePositionLost)
    assert "recreated" in error.what
    assert values(case, "absent") == [1]
    case.rewrite(absent.replace(kinesis.endpoint, "http://127.0.0.1:9"))
    error = case.update().error
    assert isinstance(error, SourceUnreachable)
    assert error.transient
