"""Streams of Kinesis, on an emulator of it (moto); the real service was never asked."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

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
    kinesis: KinesisEmulator, stream: str, *more: str, rule: str = "", position: str = "trim_horizon"
) -> str:
    """A streaming table ``t`` over a stream."""
    options = {
        "streamName": stream,
        "region": REGION,
        "endpoint": kinesis.endpoint,
        "initialPosition": position,
        **dict(text.split("=", 1) for text in more),
    }
    return (
        f"@dp.table\n{rule}def t():\n    rows = spark.readStream.format('kinesis').options(**{options!r}).load()\n"
        "    return rows.withColumn('v', F.col('data').cast('string').cast('int'))\n"
    )


def values(case: PipelineCase) -> list[int]:
    """What the table holds."""
    return sorted(row[0] for row in case.rows("t", "v", "1"))


def batch_rows(case: PipelineCase) -> list[int]:
    """Rows by batch, without the empty ones."""
    events = sorted(case.events(flow="t", level="METRICS"), key=lambda event: event["origin"]["batch_id"])
    counts = [event["details"]["flow_progress"]["metrics"].get("num_output_rows", 0) for event in events]
    return [rows for rows in counts if rows]


def test_every_record_once(pipeline, kinesis: KinesisEmulator):
    """Updates take what is new in all shards, with the columns of the closed platform; where nothing is, there is no news."""
    kinesis.make("orders", shards=3)
    kinesis.put("orders", range(20))
    case: PipelineCase = pipeline(reading(kinesis, "orders"))
    report = case.update()
    assert report.state == "COMPLETED", report.error
    assert values(case) == list(range(20))
    assert case.columns("t") == [
        "partitionKey", "data", "stream", "shardId", "sequenceNumber", "approximateArrivalTimestamp", "v",
    ]  # fmt: skip
    keys, streams, shards = zip(*case.rows("t", '"partitionKey", stream, "shardId"'), strict=True)
    assert sorted(map(int, keys)) == list(range(20))
    assert set(streams) == {"orders"}
    assert len(set(shards)) == 3
    assert has_news(case.project()).reasons == ()
    kinesis.put("orders", range(20, 25))
    time.sleep(0.2)
    lag = pipeline_lag(case.project(), case.manifest())[0].backlog
    assert lag.unknown is None
    assert 0.2 <= (lag.seconds or 0) < 60
    assert has_news(case.project()).moved
    assert case.update()["t"].output_rows == 5
    assert values(case) == list(range(25))
    assert pipeline_lag(case.project(), case.manifest())[0].backlog.seconds == 0


def test_latest_begins_with_the_first_update(pipeline, kinesis: KinesisEmulator):
    """With initialPosition latest, what was there before is left out; what comes between two updates is not."""
    kinesis.make("clicks", shards=2)
    kinesis.put("clicks", range(5))
    time.sleep(1.1)
    case: PipelineCase = pipeline(reading(kinesis, "clicks", position="latest"))
    assert case.update()["t"].output_rows == 0
    kinesis.put("clicks", range(5, 9))
    assert case.update()["t"].output_rows == 4
    assert values(case) == [5, 6, 7, 8]


def test_from_a_point_in_time(pipeline, kinesis: KinesisEmulator):
    """at_timestamp takes what arrived from then on, whichever way the time is written."""
    kinesis.make("timed")
    kinesis.put("timed", range(3))
    time.sleep(1.1)
    at = time.time()
    kinesis.put("timed", range(3, 6))
    shown = time.strftime("%m/%d/%Y %H:%M:%S GMT", time.gmtime(at))
    position = json.dumps({"at_timestamp": shown, "format": "MM/dd/yyyy HH:mm:ss ZZZ"})
    case: PipelineCase = pipeline(reading(kinesis, "timed", position=position))
    report = case.update()
    assert report.state == "COMPLETED", report.error
    assert values(case) == [3, 4, 5]


def test_a_limit_makes_batches(pipeline, kinesis: KinesisEmulator):
    """maxRecordsPerTrigger bounds each batch of one update, which still takes all; several streams can be read at once."""
    kinesis.make("many", shards=2)
    kinesis.make("few")
    kinesis.put("many", range(20))
    kinesis.put("few", range(20, 23))
    case: PipelineCase = pipeline(
        reading(kinesis, "many,few", "maxRecordsPerTrigger=6", "maxRecordsPerFetch=3")
    )
    report = case.update()
    assert report.state == "COMPLETED", report.error
    assert values(case) == list(range(23))
    rows = batch_rows(case)
    assert len(rows) >= 4
    assert max(rows) <= 6


def test_a_batch_is_repeated_as_it_was(pipeline, kinesis: KinesisEmulator):
    """A batch that failed has the same records when it comes again, whatever arrived meanwhile."""
    kinesis.make("again", shards=2)
    kinesis.put("again", range(10))
    rule = '@dp.expect_or_fail("small", "v < 5")\n'
    case: PipelineCase = pipeline(reading(kinesis, "again", rule=rule))
    assert case.update().state == "FAILED"
    kinesis.put("again", range(10, 14))
    case.rewrite(reading(kinesis, "again"))
    report = case.update()
    assert report.state == "COMPLETED", report.error
    assert values(case) == list(range(14))
    assert batch_rows(case) == [10, 4]


def test_shards_are_followed_to_their_children(pipeline, kinesis: KinesisEmulator):
    """A shard that was split is read to its end, then its children: each record once, and the parent's come first."""
    kinesis.make("grown")
    kinesis.put("grown", range(4))
    case: PipelineCase = pipeline(reading(kinesis, "grown"))
    assert case.update()["t"].output_rows == 4
    kinesis.put("grown", range(4, 6))
    kinesis.split("grown", "shardId-000000000000")
    kinesis.put("grown", range(6, 16))
    report = case.update()
    assert report.state == "COMPLETED", report.error
    assert values(case) == list(range(16))
    assert batch_rows(case) == [4, 2, 10]
    assert has_news(case.project()).reasons == ()
    kinesis.put("grown", [16])
    assert case.update()["t"].output_rows == 1


def stored_text(folder: Path) -> str:
    """All that an update wrote."""
    texts = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    return b"\n".join(texts).decode("utf-8", "replace")


def test_keys_are_written_nowhere(pipeline, kinesis: KinesisEmulator):
    """Keys that are given with the read let it read, are in no file, plan or error, and the lag says that it can't know."""
    kinesis.make("locked")
    kinesis.put("locked", range(3))
    case: PipelineCase = pipeline(reading(kinesis, "locked", f"awsAccessKey={KEY}", f"awsSecretKey={SECRET}"))
    report = case.update()
    assert report.state == "COMPLETED", report.error
    assert report["t"].output_rows == 3
    with case.resolved() as resolved:
        frame = resolved.evaluation.frames["t"]
        plan = str(frame._jdf.queryExecution().toString())
        shown = resolved.manifest.to_json()
    for text in (plan, shown, stored_text(case.storage)):
        assert KEY not in text
        assert SECRET not in text
    lag = pipeline_lag(case.project(), case.manifest())[0].backlog
    assert lag.unknown
    assert lag.moved is None
    assert has_news(case.project()).moved


def test_what_ends_a_stream_is_said(pipeline, kinesis: KinesisEmulator):
    """A stream that is not there, was made anew, can't be reached, or has records of the producer library: each by name."""
    case: PipelineCase = pipeline(reading(kinesis, "absent"))
    error = case.update().error
    assert isinstance(error, SourceNotFound)
    assert "absent" in error.what
    assert error.remedy
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
    assert values(case) == [1]
    case.rewrite(reading(kinesis, "absent").replace(kinesis.endpoint, "http://127.0.0.1:9"))
    error = case.update().error
    assert isinstance(error, SourceUnreachable)
    assert error.transient


def test_records_of_the_producer_library(pipeline, kinesis: KinesisEmulator):
    """Records that hold several are refused by name, and nothing of their batch is written."""
    kinesis.make("packed")
    kinesis.put("packed", [b"\xf3\x89\x9a\xc2rest"])
    case: PipelineCase = pipeline(reading(kinesis, "packed"))
    error = case.update().error
    assert isinstance(error, FlowFailed)
    assert "producer library" in error.what
    assert "AggregationEnabled" in error.remedy
