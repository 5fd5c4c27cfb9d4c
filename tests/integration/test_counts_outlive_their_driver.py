"""A driver that dies between a table's commit and its own record takes no count with it: the batch is counted again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession
from tests.killed_before_recording import killed_before_recording
from tests.pipeline_case import PipelineCase

from headwater_demo.kafka_broker import KafkaBroker
from headwater_spark.testing.local_session import forget_tables

pytestmark = pytest.mark.usefixtures("adaptive")

SOURCE = """
@dp.table
@dp.expect("even", "id % 2 = 0")
@dp.expect_or_drop("positive", "points > 0")
def bronze():
    rows = spark.readStream.schema("id INT, team STRING, points INT, at TIMESTAMP")
    return rows.option("maxFilesPerTrigger", 1).json(LANDING)

@dp.table
@dp.expect_or_drop("not_c", "team <> 'c'")
def distinct():
    return dp.read_stream("bronze").withWatermark("at", "1 hour").dropDuplicates(["id", "at"])

@dp.table
@dp.expect_or_drop("not_c", "team <> 'c'")
def totals():
    return dp.read_stream("bronze").groupBy("team").agg(F.sum("points").alias("points"))

@dp.table
def plain():
    return dp.read_stream("bronze")

dp.create_streaming_table("latest", expect_all_or_drop={"not_c": "team <> 'c'"})
dp.create_auto_cdc_flow(target="latest", source="bronze", keys=["id"], sequence_by="points")
"""
# Tables over a folder of their own, of which files are lost, and one over a topic.
LOST = """
def damaged(name):
    @dp.table(name=name)
    @dp.expect("even", "id % 2 = 0")
    @dp.expect_or_drop("positive", "points > 0")
    def rows():
        return spark.readStream.schema("id INT, team STRING, points INT, at TIMESTAMP").json(LANDING + "/" + name)

damaged("deleted")
damaged("rewritten")
"""
TOPIC = """
@dp.table
@dp.expect_or_drop("long", "length(value) > 1")
def messages():
    options = {{"kafka.bootstrap.servers": "{servers}", "subscribe": "counted", "startingOffsets": "earliest"}}
    return spark.readStream.format("kafka").options(**options).load().selectExpr("CAST(value AS STRING) AS value")
"""
TABLES = ("bronze", "distinct", "totals", "plain", "latest", "deleted", "rewritten", "messages")


def lot(first: int) -> list[dict[str, Any]]:
    """Six rows: one has no points, two are of the team c, and the last two have one id."""
    at = "2026-01-01T10:00:00Z"
    points = [0, 5, 6, 7, 8, 9]
    teams = ["a", "c", "c", "b", "a", "a"]
    ids = [first, first + 1, first + 2, first + 3, first + 4, first + 4]
    return [{"id": i, "team": t, "points": p, "at": at} for i, t, p in zip(ids, teams, points, strict=True)]


def batches(case: Any, flow: str) -> list[dict[str, Any]]:
    """The bodies of a flow's batch records, in the order of the batches."""
    records = [r for r in case.events(flow=flow, level="METRICS") if r["origin"]["batch_id"] is not None]
    records.sort(key=lambda record: record["origin"]["batch_id"])
    numbers = [record["origin"]["batch_id"] for record in records]
    assert numbers == list(range(len(numbers)))
    return [record["details"]["flow_progress"] for record in records]


def total(bodies: list[dict[str, Any]], metric: str) -> int:
    return sum(body["metrics"][metric] for body in bodies)


def dropped(bodies: list[dict[str, Any]]) -> int:
    return sum(body["data_quality"]["dropped_records"] for body in bodies)


def failed(bodies: list[dict[str, Any]]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for rule in (rule for body in bodies for rule in body["data_quality"]["expectations"]):
        counts[rule["name"]] += rule["failed_records"]
    return dict(counts)


def send(broker: KafkaBroker, values: list[str]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    for value in values:
        producer.produce("counted", value)
    assert producer.flush(20) == 0


@pytest.fixture(scope="module")
def case(
    tmp_path_factory: pytest.TempPathFactory, spark: SparkSession, shared_broker: KafkaBroker
) -> Iterator[PipelineCase]:
    """An update whose driver died between the tables' commits and its records, and one more after it."""
    shared_broker.create_topic("counted")
    source = SOURCE + LOST + TOPIC.format(servers=shared_broker.bootstrap_servers)
    case = PipelineCase(tmp_path_factory.mktemp("counts") / "case", source)
    case.land(lot(0))
    case.land(lot(10))
    case.land(lot(0), "deleted")
    case.land(lot(10), "rewritten")
    send(shared_broker, ["a", "bb", "ccc"])
    killed_before_recording(case, TABLES)
    assert not case.events(level="METRICS")
    (case.landing / "deleted" / "00003.json").unlink()
    (case.landing / "rewritten" / "00004.json").write_text('{"id": 1, "points": 1}\n')
    case.land(lot(20))
    case.land(lot(20), "deleted")
    send(shared_broker, ["d", "ee"])
    report = case.update()
    assert report.state == "COMPLETED", report.error
    yield case
    forget_tables(spark)


def test_what_a_dead_driver_had_written_is_counted_again(case: PipelineCase):
    """Whatever writes a table (Delta's sink with and without state, merges, AUTO CDC), every row that was read is in the
    log as written or dropped, once, after its driver died between the table's commit and its record; the tables are whole.
    """
    rows = [row for first in (0, 10, 20) for row in lot(first)]
    passed = [row for row in rows if row["points"] > 0]

    bronze = batches(case, "bronze")
    assert [body.get("counts", {}).get("origin") for body in bronze] == ["RECOMPUTED", "RECOMPUTED", None]
    assert (total(bronze, "num_input_rows"), dropped(bronze)) == (len(rows), 3)
    assert total(bronze, "num_output_rows") == len(case.rows("bronze")) == len(passed)
    assert failed(bronze) == {"even": sum(row["id"] % 2 for row in rows), "positive": 3}

    distinct = batches(case, "distinct")
    assert total(distinct, "num_input_rows") == len(passed)
    assert dropped(distinct) == 6
    assert total(distinct, "num_output_rows") == len(case.rows("distinct")) == len(passed) - 3 - 6

    assert total(batches(case, "plain"), "num_input_rows") == len(case.rows("plain")) == len(passed)

    totals = batches(case, "totals")
    assert total(totals, "num_input_rows") == len(passed)
    assert failed(totals) == {"not_c": len(totals)}
    assert case.rows("totals") == [("a", 51), ("b", 21)]

    latest = batches(case, "latest")
    assert (total(latest, "num_input_rows"), dropped(latest)) == (len(passed), 6)
    assert len(case.rows("latest")) == 6
    for flow in TABLES:
        leftover = case.checkpoint(flow).folder / ".recount"
        assert not leftover.exists()


def test_counts_that_cannot_be_had_are_null(case: PipelineCase):
    """Where a file of the batch is gone or was rewritten, the counts are null with the reason, not 0; the tables lose nothing."""
    for flow, file in (("deleted", "00003.json"), ("rewritten", "00004.json")):
        batch = batches(case, flow)[0]
        assert batch["counts"]["origin"] == "UNKNOWN"
        assert "deleted or modified" in batch["counts"]["reason"]
        assert batch["counts"]["reason"].endswith(file)
        assert "num_input_rows" not in batch["metrics"]
        assert batch["metrics"]["num_output_rows"] == 5
        assert batch["data_quality"]["dropped_records"] is None
        assert batch["data_quality"]["expectations"] == []
    assert len(case.rows("deleted")) == 10
    assert len(case.rows("rewritten")) == 5


def test_topics_are_counted_again(case: PipelineCase):
    """Messages of Kafka that a dead driver had written and dropped are in the log, once."""
    records = batches(case, "messages")
    assert (total(records, "num_input_rows"), total(records, "num_output_rows"), dropped(records)) == (
        5,
        3,
        2,
    )
    assert records[0]["counts"] == {"origin": "RECOMPUTED"}
