"""Streams of Kinesis, on an emulator of it (moto); the real service was never asked.

A query over Kinesis starts a process that plans its batches, so tests look at what the same few updates of two pipelines did: one
whose streams all have their rows in the end, and one whose streams end.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.kinesis_emulator import REGION, KinesisEmulator, kinesis_emulator
from tests.pipeline_case import PipelineCase, UpdateReport

from headwater.delta_log.table_history import table_exists
from headwater.errors import FlowFailed, SourceNotFound, SourcePositionLost, SourceUnreachable
from headwater.metrics.backlog import Backlog
from headwater.metrics.lag import pipeline_lag
from headwater.updates.news import NewsVerdict, has_news
from headwater_spark.testing.local_session import forget_tables

KEY, SECRET = "AKIAOFATEST", "s3cr3t/of/a+test"
# Spark gives such a process ten seconds to begin.
ONE_BY_ONE = "  spark.sql.pipelines.execution.maxConcurrentFlows: 1\n"
SMALL = '@dp.expect_or_fail("small", "v < 5")\n'


@pytest.fixture(scope="module")
def kinesis() -> Iterator[KinesisEmulator]:
    """An emulator for the module."""
    with kinesis_emulator() as running:
        yield running


def reading(
    kinesis: KinesisEmulator,
    table: str,
    streams: str,
    *more: str,
    rule: str = "",
    position: str = "trim_horizon",
) -> str:
    """A streaming table over streams."""
    options = {
        "streamName": streams,
        "region": REGION,
        "endpoint": kinesis.endpoint,
        "initialPosition": position,
        **dict(text.split("=", 1) for text in more),
    }
    return (
        f"@dp.table\n{rule}def {table}():\n"
        f"    rows = spark.readStream.format('kinesis').options(**{options!r}).load()\n"
        "    return rows.withColumn('v', F.col('data').cast('string').cast('int'))\n\n"
    )


def values(case: PipelineCase, table: str, stream: str = "") -> list[int]:
    """What the table holds, of one stream or of all."""
    return [v for name, v in case.rows(table, "stream, v", "2") if stream in ("", name)]


def batch_rows(case: PipelineCase, flow: str) -> list[int]:
    """Rows by batch, without the empty ones."""
    events = sorted(case.events(flow=flow, level="METRICS"), key=lambda event: event["origin"]["batch_id"])
    counts = [event["details"]["flow_progress"]["metrics"].get("num_output_rows", 0) for event in events]
    return [rows for rows in counts if rows]


def backlog(case: PipelineCase, flow: str) -> Backlog:
    """What a flow has not read, asked without Spark."""
    return next(lag.backlog for lag in pipeline_lag(case.project(), case.manifest()) if lag.flow == flow)


@dataclass(frozen=True)
class Taken:
    """A pipeline after three updates, and what was said of its streams between them."""

    case: PipelineCase
    updates: tuple[UpdateReport, UpdateReport, UpdateReport]
    nothing_new: NewsVerdict
    something_new: NewsVerdict
    behind: Backlog
    caught_up: Backlog


@pytest.fixture(scope="module")
def taken(
    kinesis: KinesisEmulator, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Taken]:
    """Streams before a first update, what comes before a second one, and a record more before a third."""
    for stream, shards in (
        ("orders", 3),
        ("grown", 1),
        ("clicks", 2),
        ("many", 2),
        ("few", 1),
        ("again", 2),
    ):
        kinesis.make(stream, shards)
    kinesis.put("clicks", range(5))
    kinesis.put("orders", [-3, -2, -1])
    kinesis.put("grown", [-1])
    time.sleep(1.1)
    at = time.strftime("%m/%d/%Y %H:%M:%S GMT", time.gmtime())
    for stream, numbers in (
        ("orders", range(20)), ("grown", range(4)), ("many", range(8)), ("few", range(8, 10)), ("again", range(10)),
    ):  # fmt: skip
        kinesis.put(stream, numbers)
    others = (
        reading(kinesis, "both", "orders,grown", position=json.dumps({"at_timestamp": at, "format": "MM/dd/yyyy HH:mm:ss ZZZ"})),
        reading(kinesis, "latest", "clicks", position="latest"),
        reading(kinesis, "limited", "many,few", "maxRecordsPerTrigger=6", "maxRecordsPerFetch=2"),
    )  # fmt: skip
    case = PipelineCase(
        tmp_path_factory.mktemp("kinesis") / "case",
        "".join((*others, reading(kinesis, "repeated", "again", rule=SMALL))),
        spec=ONE_BY_ONE,
    )
    first = case.update()
    kinesis.put("orders", range(20, 25))
    kinesis.put("grown", range(4, 6))
    kinesis.split("grown", "shardId-000000000000")
    kinesis.put("grown", range(6, 16))
    kinesis.put("clicks", range(5, 9))
    kinesis.put("again", range(10, 14))
    case.rewrite("".join((*others, reading(kinesis, "repeated", "again"))))
    second = case.update()
    nothing_new = has_news(case.project())
    kinesis.put("grown", [16])
    time.sleep(0.2)
    behind, something_new = backlog(case, "both"), has_news(case.project())
    third = case.update(tables=("both",))
    yield Taken(case, (first, second, third), nothing_new, something_new, behind, backlog(case, "both"))
    forget_tables(spark)


def test_every_record_once(taken: Taken):
    """Updates take what is new in all shards, with the columns of the closed platform; where nothing is, there is no news."""
    case, (first, second, third) = taken.case, taken.updates
    assert (second.state, third.state) == ("COMPLETED", "COMPLETED"), second.error
    assert [report["both"].output_rows for report in taken.updates] == [24, 17, 1]
    assert values(case, "both", "orders") == list(range(25))
    assert case.columns("both") == [
        "partitionKey", "data", "stream", "shardId", "sequenceNumber", "approximateArrivalTimestamp", "v",
    ]  # fmt: skip
    keys, streams, shards = zip(*case.rows("both", '"partitionKey", stream, "shardId"'), strict=True)
    assert sorted(map(int, keys)) == sorted([*range(25), *range(17)])
    assert set(streams) == {"orders", "grown"}
    assert len({place for place in zip(streams, shards, strict=True) if place[0] == "orders"}) == 3
    assert first.statuses == dict.fromkeys(("both", "latest", "limited"), "COMPLETED") | {
        "repeated": "FAILED"
    }


def test_lag_and_news(taken: Taken):
    """Where all was read there is no news, shards that were split included; a record more is news, and has an age."""
    assert taken.nothing_new.reasons == ()
    assert taken.something_new.moved
    assert taken.behind.unknown is None
    assert 0.2 <= (taken.behind.seconds or 0) < 60
    assert taken.caught_up.seconds == 0


def test_latest_begins_with_the_first_update(taken: Taken):
    """With initialPosition latest, what was there before is left out; what comes between two updates is not."""
    assert [report["latest"].output_rows for report in taken.updates[:2]] == [0, 4]
    assert values(taken.case, "latest") == [5, 6, 7, 8]


def test_from_a_point_in_time(taken: Taken):
    """at_timestamp takes what arrived from then on, in all shards and in a pattern of Java's."""
    assert taken.updates[0]["both"].output_rows == 24
    assert min(values(taken.case, "both", "orders")) == min(values(taken.case, "both", "grown")) == 0


def test_a_limit_makes_batches(taken: Taken):
    """maxRecordsPerTrigger bounds each batch of one update, which still takes all; several streams can be read at once."""
    assert taken.updates[0]["limited"].output_rows == 10
    assert values(taken.case, "limited") == list(range(10))
    rows = batch_rows(taken.case, "limited")
    assert len(rows) >= 2
    assert max(rows) <= 6


def test_a_batch_is_repeated_as_it_was(taken: Taken):
    """A batch that failed has the same records when it comes again, whatever arrived meanwhile."""
    assert values(taken.case, "repeated") == list(range(14))
    assert batch_rows(taken.case, "repeated") == [10, 4]


def test_shards_are_followed_to_their_children(taken: Taken):
    """A shard that was split is read to its end, then its children: each record once, and the parent's come first."""
    assert values(taken.case, "both", "grown") == list(range(17))
    # The second batch has five orders and what is left of the parent.
    assert batch_rows(taken.case, "both") == [24, 7, 10, 1]


def stored_text(folder: Path) -> str:
    """All that an update wrote."""
    texts = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    return b"\n".join(texts).decode("utf-8", "replace")


@dataclass(frozen=True)
class Ended:
    """A pipeline after two updates in which streams end."""

    case: PipelineCase
    first: UpdateReport
    second: UpdateReport


@pytest.fixture(scope="module")
def ended(
    kinesis: KinesisEmulator, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ended]:
    """A stream that comes after the first update, one with keys that was made anew by the second, and others that fail."""
    for stream, data in (("anew", [1]), ("packed", [b"\xf3\x89\x9a\xc2rest"])):
        kinesis.make(stream)
        kinesis.put(stream, data)
    away = reading(kinesis, "away", "orders").replace(kinesis.endpoint, "http://127.0.0.1:9")
    case = PipelineCase(
        tmp_path_factory.mktemp("kinesis") / "ended",
        "".join((
            *(reading(kinesis, name, name) for name in ("absent", "packed")), away,
            reading(kinesis, "anew", "anew", f"awsAccessKey={KEY}", f"awsSecretKey={SECRET}"),
        )),
        spec=ONE_BY_ONE,
    )  # fmt: skip
    first = case.update()
    kinesis.client.delete_stream(StreamName="anew")
    time.sleep(1.1)
    for stream in ("absent", "anew"):
        kinesis.make(stream)
        kinesis.put(stream, [2])
    yield Ended(case, first, case.update(tables=("absent", "anew")))
    forget_tables(spark)


def test_keys_are_written_nowhere(ended: Ended):
    """Keys that are given with the read let it read, are in no file, plan or error, and the lag says that it can't know."""
    case = ended.case
    assert ended.first["anew"].output_rows == 1
    with case.resolved() as resolved:
        frame = resolved.evaluation.frames["anew"]
        plan = str(frame._jdf.queryExecution().toString())
        shown = resolved.manifest.to_json()
    for text in (plan, shown, str(ended.second["anew"].error), stored_text(case.storage)):
        assert KEY not in text
        assert SECRET not in text
    lag = backlog(case, "anew")
    assert lag.unknown
    assert lag.moved is None
    assert has_news(case.project()).moved


def test_what_ends_a_stream_is_said(ended: Ended):
    """A stream that is not there, was made anew, or can't be reached: each by name, and the first is read once it is there."""
    absent, away, anew = ended.first["absent"].error, ended.first["away"].error, ended.second["anew"].error
    assert isinstance(absent, SourceNotFound)
    assert "absent" in absent.what
    assert absent.remedy
    assert values(ended.case, "absent") == [2]
    assert isinstance(away, SourceUnreachable)
    assert away.transient
    assert isinstance(anew, SourcePositionLost)
    assert "recreated" in anew.what
    assert values(ended.case, "anew") == [1]


def test_records_of_the_producer_library(ended: Ended):
    """Records that hold several are refused by name, and nothing of their batch is written."""
    error = ended.first["packed"].error
    assert isinstance(error, FlowFailed)
    assert "producer library" in error.what
    assert "AggregationEnabled" in error.remedy
    assert not table_exists(ended.case.table("packed")) or values(ended.case, "packed") == []
