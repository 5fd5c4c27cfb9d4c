"""The pipeline that is killed: what it reads, what its tables have to be in the end."""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from tests.pipeline_case import SMALL_QUERIES, SPARK, PipelineCase

from headwater.checkpoints.offsets import last_committed_batch
from headwater.delta_log.table_history import table_exists
from headwater.testing.auto_cdc import expected_scd1, expected_scd2
from headwater_demo.kafka_broker import KafkaBroker

# What needs no merge.
APPENDED = """
OFTEN = {"delta.checkpointInterval": "10"}

@dp.table(comment="rows as they come", table_properties=OFTEN)
@dp.expect("even", "id % 2 = 0")
@dp.expect_or_drop("positive", "points > 0")
def bronze():
    rows = spark.readStream.schema("id INT, team STRING, points INT")
    return rows.option("maxFilesPerTrigger", 5).json(LANDING)

@dp.table
def running():
    return dp.read_stream("bronze").groupBy("team").count()

@dp.table(table_properties=OFTEN)
@dp.expect_or_drop("small", "points < 9")
@dp.expect_or_quarantine("not_c", "team <> 'c'")
def judged():
    return dp.read_stream("bronze")
"""
SOURCE = (
    APPENDED
    + """
@dp.table
def doubled():
    twice = F.explode(F.array(F.col("points"), F.col("points") * 2)).alias("points")
    return spark.readStream.option("maxFilesPerTrigger", 5).table("bronze").select("id", "team", twice)

@dp.materialized_view(table_properties=OFTEN, refresh_policy="incremental")
def standings():
    return dp.read("doubled").groupBy("team").agg(F.count("*").alias("n"), F.sum("points").alias("points"))

@dp.temporary_view
def points_changes():
    return dp.read_stream("doubled").select(
        (F.col("id") % 17).alias("key"), "points", F.expr("id * 7919 % 1009 * 100 + points").alias("at"),
        F.when(F.col("points") % 5 == 0, "D").otherwise("U").alias("op"))

CHANGES = dict(source="points_changes", keys=["key"], sequence_by="at", apply_as_deletes="op = 'D'", except_column_list=["op", "at"])
dp.create_streaming_table("latest", table_properties=OFTEN)
dp.create_auto_cdc_flow(target="latest", **CHANGES)
dp.create_streaming_table("history", table_properties=OFTEN)
dp.create_auto_cdc_flow(target="history", stored_as_scd_type=2, **CHANGES)
dp.create_streaming_table("followed")
dp.create_auto_cdc_from_snapshot_flow(target="followed", source="standings", keys=["team"], stored_as_scd_type=2)
"""
)
SENDING = """
dp.create_sink("outbox", "kafka", {"kafka.bootstrap.servers": "BROKER", "topic": "outbox"})

@dp.append_flow(name="send", target="outbox")
def send():
    return dp.read_stream("bronze").selectExpr("CAST(id AS STRING) AS value")
"""
# How a flow, or an update, can end; what an update leaves out is told so once.
_ENDS = ("COMPLETED", "FAILED", "SKIPPED", "STOPPED", "CANCELED", "EXCLUDED")
# Code that is compiled for ten rows, in a JVM that is killed, pays for itself nowhere.
SETTINGS = {**SPARK, **SMALL_QUERIES}


class Feed:
    """Lands small files and remembers what was in them."""

    def __init__(self, case: PipelineCase, chance: random.Random) -> None:
        self._case, self._chance = case, chance
        self._next = 0.0
        self.rows: list[tuple[int, str, int]] = []

    def land(self, files: int) -> None:
        """Land some files now."""
        for _ in range(files):
            # Each file has a row for every flow.
            rows = [("a", 3), ("c", 4), *(self._any() for _ in range(self._chance.randint(0, 4)))]
            first = len(self.rows)
            self.rows += [(first + n, team, points) for n, (team, points) in enumerate(rows)]
            self._case.land(
                [{"id": i, "team": team, "points": points} for i, team, points in self.rows[first:]]
            )

    def _any(self) -> tuple[str, int]:
        return self._chance.choice("abc"), self._chance.randint(-2, 9)

    def now_and_then(self) -> None:
        """Land a file about every eight seconds."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + 8
            self.land(1)

    @property
    def accepted(self) -> list[tuple[int, str, int]]:
        """What the rules let through."""
        return [row for row in self.rows if row[2] > 0]

    @property
    def judged(self) -> list[tuple[int, str, int]]:
        """What neither the quarantine nor the second rule keeps out."""
        return [row for row in self.accepted if row[1] != "c" and row[2] < 9]


@dataclass(frozen=True)
class Outbox:
    """What a flow sent to a real broker."""

    broker: KafkaBroker

    def source(self) -> str:
        """The text of the flow."""
        return SENDING.replace("BROKER", self.broker.bootstrap_servers)

    def received(self) -> list[int]:
        """Every message of the topic."""
        consumer = Consumer({"bootstrap.servers": self.broker.bootstrap_servers, "group.id": "of-the-test"})
        try:
            place = TopicPartition("outbox", 0, 0)
            _, end = consumer.get_watermark_offsets(place, 10)
            consumer.assign([place])
            messages = consumer.consume(end, 20)
            assert len(messages) == end
            return [int(message.value() or b"") for message in messages]
        finally:
            consumer.close()


def check_at_any_moment(case: PipelineCase, feed: Feed) -> None:
    """A table holds a part of its rows, each as often as it came; of a history no key has two open rows."""
    parts = {"bronze": feed.accepted, "judged": feed.judged}
    for name, rows in parts.items():
        if table_exists(case.table(name)):
            assert not Counter(case.rows(name)) - Counter(rows), name
    if table_exists(case.table("history")):
        keys = [row[0] for row in case.rows("history") if row[-1] is None]
        assert len(keys) == len(set(keys))


def check_appended(case: PipelineCase, feed: Feed) -> None:
    """The tables of ``APPENDED`` are what their queries give over all that was landed."""
    assert Counter(case.rows("bronze")) == Counter(feed.accepted)
    assert Counter(case.rows("judged")) == Counter(feed.judged)
    kept_out = Counter(row for row in feed.accepted if row[1] == "c")
    assert Counter(case.rows("judged_quarantine", "id, team, points")) == kept_out
    assert dict(case.rows("running")) == Counter(team for _, team, _ in feed.accepted)


def check_tables(case: PipelineCase, feed: Feed) -> None:
    """As ``check_appended``, of all tables."""
    check_appended(case, feed)
    doubled = [(i, team, points * k) for i, team, points in feed.accepted for k in (1, 2)]
    assert Counter(case.rows("doubled")) == Counter(doubled)
    teams = sorted({team for _, team, _ in doubled})
    expected = [(team, *_totals(doubled, team)) for team in teams]
    assert case.rows("standings") == expected
    _check_changes(case, doubled)
    open_rows = [row for row in case.rows("followed") if row[-1] is None]
    assert [row[:3] for row in sorted(open_rows)] == expected


def _check_changes(case: PipelineCase, doubled: list[tuple[int, str, int]]) -> None:
    """What was merged from the changes is what the oracle makes of all of them."""
    events = [
        {
            "key": i % 17,
            "points": points,
            "at": i * 7919 % 1009 * 100 + points,
            "op": "U" if points % 5 else "D",
        }
        for i, _, points in doubled
    ]
    options: dict[str, Any] = {
        "keys": ["key"], "sequence_by": "at", "apply_as_deletes": lambda row: row["op"] == "D",
        "except_column_list": ("op", "at"),
    }  # fmt: skip
    latest = [tuple(row.values()) for row in expected_scd1(events, **options)]
    assert case.rows("latest", order="key") == latest
    history = [tuple(row.values()) for row in expected_scd2(events, **options)]
    assert case.rows("history", order='key, "__START_AT"') == history


def _totals(rows: list[tuple[int, str, int]], team: str) -> tuple[int, int]:
    points = [row[2] for row in rows if row[1] == team]
    return len(points), sum(points)


def check_endings(case: PipelineCase) -> None:
    """Every update that got as far as to plan its flows has one end, and so has each of its flows."""
    endings: Counter[tuple[str, str | None]] = Counter()
    started: set[tuple[str, str | None]] = set()
    for record in case.events(event_type=("flow_progress", "update_progress")):
        key = (record["origin"]["update_id"], record["origin"]["flow_name"])
        state = (
            record["details"].get("flow_progress", {}).get("status")
            or record["details"]["update_progress"]["state"]
        )
        started.add(key)
        endings[key] += state in _ENDS
    assert started
    wrong = {key: count for key, count in endings.items() if count != 1}
    assert not wrong, wrong


def check_records(case: PipelineCase, feed: Feed, flow: str) -> None:
    """One record for each batch of the live epoch, and together they tell of every row that was appended."""
    live = case.checkpoint(flow).live_folder()
    records = [
        record
        for record in case.events(flow=flow, level="METRICS")
        if record["origin"]["batch_id"] is not None and record["origin"]["epoch"] == int(live.name)
    ]
    last = last_committed_batch(live)
    assert last is not None
    assert sorted(record["origin"]["batch_id"] for record in records) == list(range(last + 1))
    if flow in ("bronze", "doubled", "judged"):  # in the others a batch writes rows anew
        metrics: list[dict[str, Any]] = [r["details"]["flow_progress"]["metrics"] for r in records]
        assert sum(m["num_output_rows"] for m in metrics) == len(case.rows(flow))
    if flow == "bronze":  # what a killed driver had written is counted again
        quality = [r["details"]["flow_progress"]["data_quality"] for r in records]
        landed = feed.rows
        assert sum(m["num_input_rows"] for m in metrics) == len(landed)
        assert sum(q["dropped_records"] for q in quality) == sum(points <= 0 for _, _, points in landed)
        failed = Counter[str]()
        for rule in (rule for q in quality for rule in q["expectations"]):
            failed[rule["name"]] += rule["failed_records"]
        assert failed["even"] == sum(number % 2 for number, _, _ in landed)
    if flow == "judged":  # of a batch that a killed driver left, the table's commit has the counts
        quality = [r["details"]["flow_progress"]["data_quality"] for r in records]
        kept_out = case.rows("judged_quarantine", "id")
        assert sum(q["quarantined_records"] for q in quality) == len(kept_out)


def check_messages(outbox: Outbox, feed: Feed) -> None:
    """Every row was sent at least once, and nothing else was."""
    assert set(outbox.received()) == {row[0] for row in feed.accepted}
