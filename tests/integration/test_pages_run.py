"""The pages show code that works: their files are one pipeline, which is run once over the events of a day."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession
from tests.page_blocks import blocks, page_files
from tests.pipeline_case import read_rows

from headwater.testing import run_pipeline

DAY = "2026-01-01T"
USERS = [{"user_id": "u1", "user_name": "Ann"}, {"user_id": "u2", "user_name": "Bo"}]


def message(number: int, user: str | None, time: str, kind: str = "view") -> str:
    """A message of the topic."""
    event = {"event_id": f"e{number}", "user_id": user, "event_type": kind, "timestamp": f"{DAY}{time}:00Z"}
    return json.dumps({**event, "platform": "web", "properties": {"page": "home"}})


MESSAGES = [
    message(1, "u1", "10:01"),
    message(2, "u1", "10:02", "buy"),
    message(3, "u2", "10:31"),
    message(4, "u2", "10:32"),
    message(5, "u1", "11:10"),
    message(6, "u9", "15:00"),
    "not json",
]
PAYMENT = {"payment_id": 1, "user_id": "u1", "amount": 5, "paid_at": f"{DAY}10:00:00Z"}
VISIT = {"user_id": "u1", "page": "home", "at": f"{DAY}10:00:00Z"}
CHANGES = [
    (1, "Ann", "INSERT", "10:00"),
    (1, "Anna", "UPDATE", "10:02"),
    (1, "An", "UPDATE", "10:01"),
    (2, None, "DELETE", "10:00"),
]
INPUTS: dict[str, list[Any]] = {
    "kafka:user-events": MESSAGES,
    "silver.users": USERS,
    "json:landing/clicks": [
        {"click_id": n, "user_id": "u1", "page": page, "at": f"{DAY}10:00:00Z"}
        for n, page in enumerate("aab")
    ],
    "json:landing/sessions": [
        {"session_id": "s1", "user_id": "u1", "seconds": 5},
        {"session_id": "s2", "seconds": 90_000},
    ],
    "text:landing/payments": [
        json.dumps(PAYMENT),
        json.dumps({**PAYMENT, "payment_id": 2, "amount": -1}),
        "?",
    ],
    "json:landing/web": [VISIT],
    "json:landing/app": [{**VISIT, "user_id": "u9"}],
    "json:landing/accounts": [
        {"account_id": n, "owner": who, "operation": what, "changed_at": f"{DAY}{at}:00Z"}
        for n, who, what, at in CHANGES
    ],
    "json:landing/devices": [{"device_id": 1, "color": "red"}, {"device_id": "one", "color": "blue"}],
}


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory, one_partition: None) -> Any:
    """Every dataset of the pages after one update."""
    folder = tmp_path_factory.mktemp("pages")
    for name, text in page_files().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (spec,) = [block.text for block in blocks() if block.page == "recipes.md" and block.language == "yaml"]
    (folder / "pipeline.yml").write_text(spec)
    return run_pipeline(folder, inputs=INPUTS)


def rows(day: Any, name: str, *columns: str) -> list[tuple[Any, ...]]:
    """Columns of a dataset's rows; times as hours and minutes."""
    found = [tuple(row[column] for column in columns) for row in day[name].rows]
    return sorted((tuple(f"{v:%H:%M}" if hasattr(v, "hour") else v for v in row) for row in found), key=str)


def test_kafka_into_bronze(day: Any):
    """The columns of the guide, in order; what is no event is kept apart (features A110, A113)."""
    event = ["event_id", "user_id", "event_type", "timestamp", "platform", "properties"]
    kafka = ["kafka_key", "kafka_timestamp", "kafka_partition", "kafka_offset"]
    bronze = day["bronze.user_events"]
    assert list(bronze.columns) == [*event, *kafka, "ingestion_timestamp", "dt"]
    assert bronze.columns["properties"] == "map<string,string>"
    assert (len(bronze.rows), bronze.quarantined) == (6, 1)
    assert bronze.quarantine[0]["kafka_offset"] == 6


def test_session_metrics(day: Any):
    """Sessions that are over, with their length; the newest may go on."""
    assert rows(day, "gold.session_metrics", "user_id", "session_start", "events", "seconds") == [
        ("u1", "10:01", 2, 60),
        ("u1", "11:10", 1, 0),
        ("u2", "10:31", 2, 60),
    ]


def test_late_events(day: Any):
    """The stream writes windows that are closed, the view every one."""
    closed = [("10:00", "web", 2), ("10:30", "web", 2), ("11:10", "web", 1)]
    assert rows(day, "silver.events_per_five_minutes", "start", "platform", "events") == closed
    assert rows(day, "gold.events_per_five_minutes", "start", "platform", "events") == [
        *closed,
        ("15:00", "web", 1),
    ]


def test_two_streams(day: Any):
    """A purchase meets the views of its user in the ten minutes before."""
    assert rows(day, "silver.purchases_after_views", "event_id", "view_id") == [("e2", "e1")]


def test_exact_distinct_counts(day: Any):
    """One stage and two give the same (features A078)."""
    assert rows(day, "gold.users_per_hour", "start", "users") == [("10:00", 2), ("11:00", 1)]
    assert rows(day, "gold.users_per_hour_in_two_stages", "start", "events", "users") == [
        ("10:00", 4, 2),
        ("11:00", 1, 1),
    ]


def test_new_columns(day: Any):
    """What has no column is kept as JSON."""
    (plain, odd) = rows(day, "bronze.devices", "device_id", "color", "_rescued_data")
    assert plain == (1, "red", None)
    assert odd[:2] == (None, "blue")
    assert json.loads(odd[2])["device_id"] == "one"


def test_layers(day: Any):
    """Everything in bronze, one payment in silver and two kept apart, the sum in gold (features A111)."""
    assert len(day["bronze.payments"].rows) == 3
    assert (rows(day, "silver.payments", "payment_id"), day["silver.payments"].quarantined) == ([(1,)], 2)
    assert [float(row["revenue"]) for row in day["gold.revenue_per_day"].rows] == [5.0]


def test_data_flows(day: Any):
    """Two flows into one table, a join with a table, changes by key (features A111)."""
    assert rows(day, "visits_with_names", "user_id", "user_name") == [("u1", "Ann"), ("u9", None)]
    assert len(day["visits"].rows) == 2
    assert rows(day, "accounts", "account_id", "owner") == [(1, "Anna")]


def test_streaming_tables_and_lakeflow(day: Any):
    """The first page's two tables; the block with `import dlt` (features A111)."""
    assert rows(day, "clicks_per_page", "page", "clicks") == [("a", 2), ("b", 1)]
    assert rows(day, "sessions_silver", "session_id", "seconds") == [("s1", 5)]
    assert (day["sessions_silver"].dropped, day["sessions_silver"].expectations["has_user"].failed) == (1, 1)


def test_streams_by_hand(spark: SparkSession, tmp_path: Path):
    """The block of the page about streams written by hand runs, over tables that are there."""
    (block,) = [block for block in blocks() if block.page == "hand-written-streams.md"]
    folder = tmp_path / "by_hand"
    spark.sql(f"CREATE SCHEMA by_hand LOCATION '{folder}'")
    names = {name: f"by_hand.{name}" for name in ("events", "valid", "invalid", "transactions", "changes")}
    numbers = pa.schema([("t_id", pa.int32()), ("at", pa.int32())])
    there = {
        "events": pa.table({"event_id": ["e1", None], "event_timestamp": [datetime.now(UTC)] * 2}),
        "transactions": numbers.empty_table(),
        "changes": pa.table(
            [[1, 2], [1, 1], ["INSERT", "DELETE"]], schema=numbers.append(pa.field("operation", pa.string()))
        ),
    }
    for name, content in there.items():
        write_deltalake(str(folder / name), content)
        spark.sql(f"CREATE TABLE {names[name]} USING delta LOCATION '{folder / name}'")
    exec(compile(block.text, block.page, "exec"), {"spark": spark, "folder": str(tmp_path), **names})
    counts = {name: len(read_rows(folder / name)) for name in names}
    spark.sql("DROP SCHEMA by_hand CASCADE")
    assert counts == {"events": 2, "valid": 1, "invalid": 1, "transactions": 1, "changes": 2}


def test_no_block_is_left_out():
    """Each dataset that a page declares is looked at here."""
    text = Path(__file__).read_text(encoding="utf-8")
    declared = re.findall(
        r'@(?:dp|dlt)\.(?:table|materialized_view)\(?(?:name="([\w.]+)")?', "".join(page_files().values())
    )
    assert not [name for name in declared if name and name not in text and name != "sessions_bronze"]
