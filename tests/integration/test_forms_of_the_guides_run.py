"""Windows, deduplication, joins and three-part names as guides write them, or as near as Spark allows, with what is measured of them.

One pipeline, which a trigger of the guides (`once`) takes through three files a table: three hours lie between any two.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession
from tests.pipeline_case import PipelineCase

from headwater.checkpoints.offsets import committed_offsets, read_offsets
from headwater.commands.command_line import main
from headwater.graph.stored_manifest import stored_manifest
from headwater.metrics.lag import pipeline_lag
from headwater_spark.plans.stream_operations import exact_form
from headwater_spark.testing.local_session import forget_tables

NAMED = "prod_trusted_bronze.internal.user_events"
START = datetime(2026, 1, 1, 10, tzinfo=UTC)
FILES = 3
SOURCE = """
from pyspark.sql.functions import *

def events(files=1):
    return spark.readStream.option("maxFilesPerTrigger", files).table("raw.events")

@dp.table(name="prod_trusted_bronze.internal.user_events")
def user_events():
    return events()

@dp.table(name="in_three_parts")
def read_by_its_name():
    return spark.readStream.table("prod_trusted_bronze.internal.user_events").select("event_id")

def of_the_hour(rows):
    return rows.withWatermark("event_timestamp", "1 hour").groupBy(window("event_timestamp", "1 hour"), "event_type")

@dp.table
def hourly_event_counts():
    return of_the_hour(events(files=100)).agg(
        count("*").alias("event_count"), size(collect_set("user_id")).alias("unique_users"),
        {exact_pairs}.alias("unique_pairs"),
    ).select(col("window.start").alias("window_start"), col("window.end").alias("window_end"), "event_type", "event_count",
             "unique_users", "unique_pairs")

@dp.materialized_view
def counted_as_a_batch():
    return spark.read.table("raw.events").groupBy(window("event_timestamp", "1 hour"), "event_type").agg(
        count("*").alias("event_count"), countDistinct("user_id").alias("unique_users"),
        countDistinct("user_id", "platform").alias("unique_pairs"),
    ).select(col("window.start").alias("window_start"), col("window.end").alias("window_end"), "event_type", "event_count",
             "unique_users", "unique_pairs")

@dp.table
def windowed_event_metrics():
    return (events().withWatermark("event_timestamp", "10 minutes")
        .groupBy(window(col("event_timestamp"), "5 minutes"), col("platform"))
        .agg(count("*").alias("event_count"), size(collect_set("user_id")).alias("unique_users")))

@dp.table
def streaming_metrics():
    return (events(files=100).withWatermark("event_timestamp", "10 minutes")
        .groupBy(window(col("event_timestamp"), "5 minutes", "1 minute"), col("platform"), col("event_type"))
        .agg(count("*").alias("event_count"), size(collect_set("user_id")).alias("unique_users"),
             approx_count_distinct("session_id").alias("approx_sessions"))
        .select(col("window.start").alias("window_start"), col("window.end").alias("window_end"), col("platform"),
                col("event_type"), col("event_count"), col("unique_users"), col("approx_sessions")))

@dp.table
def unbounded_state():
    return events().groupBy("event_id").agg(sum("amount").alias("amount"))

@dp.table
def bounded_state():
    return (events().withWatermark("event_timestamp", "1 hour")
        .groupBy(window("event_timestamp", "1 hour"), "event_id").agg(sum("amount").alias("amount")))

@dp.table
def joined():
    stream1 = events().withWatermark("event_timestamp", "5 minutes")
    stream2 = (spark.readStream.option("maxFilesPerTrigger", 1).table("raw.impressions")
        .withWatermark("impression_timestamp", "5 minutes"))
    return stream1.alias("e").join(stream2.alias("i"), expr('''
        e.user_id = i.user_id AND e.event_timestamp >= i.impression_timestamp
        AND e.event_timestamp <= i.impression_timestamp + interval 10 minutes'''), "inner").select("e.*", "i.impression_timestamp")
"""
SOURCE += """
from headwater.streaming import upsert_changes

@dp.table
def scattered():
    return events(files=100).repartition(6)

@dp.table(table_properties={"delta.autoOptimize.optimizeWrite": "true", "delta.autoOptimize.autoCompact": "true"})
def optimized_stream():
    return events(files=100).repartition(6)

@dp.foreach_batch_sink
def newest_of_each_user(batch_df, batch_id):
    merge = upsert_changes("retail_db.silver", ["user_id"], sequence_by="event_timestamp", apply_as_deletes="event_id = 'e2-u2'",
                           except_column_list=[name for name in batch_df.columns if name not in ("user_id", "event_id", "event_timestamp")])
    merge(batch_df, batch_id)

@dp.append_flow(target="newest_of_each_user")
def changes():
    return events(files=2)
"""
STREAMS = ["unbounded_state", "bounded_state", "joined"]


def rows_of_file(number: int) -> list[dict[str, Any]]:
    """Six events of three users (one unknown), each user's told twice, in the first minutes of an hour."""
    hour = START + timedelta(hours=3 * number)
    return [
        {
            "event_id": f"e{number}-{user}", "user_id": user or None, "event_type": "view", "platform": "web" if user != "u2" else None,
            "session_id": f"s{user}", "amount": 1.0, "event_timestamp": hour + timedelta(minutes=minute),
        }
        for user in ("u1", "u2", "")
        for minute in (1, 2)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def guide(
    tmp_path_factory: pytest.TempPathFactory, spark: SparkSession, one_partition: None
) -> Iterator[PipelineCase]:
    """The pipeline after one update over all files."""
    pairs = exact_form(["user_id", "platform"]).split("Or ")[1].split(", which")[0]
    source = SOURCE.replace("{exact_pairs}", pairs)
    case = PipelineCase(tmp_path_factory.mktemp("guide"), source, spec="trigger: once\n")
    for number in range(FILES):
        rows = rows_of_file(number)
        seen = [{"user_id": row["user_id"], "impression_timestamp": row["event_timestamp"]} for row in rows]
        for name, content in (("events", rows), ("impressions", seen)):
            write_deltalake(str(case.table(f"raw.{name}")), pa.Table.from_pylist(content), mode="append")
            time.sleep(0.01)
    silver = (
        pa.Table.from_pylist(rows_of_file(0)).select(["user_id", "event_id", "event_timestamp"]).slice(0, 0)
    )
    write_deltalake(str(case.table("retail_db.silver")), silver)
    report = case.update()
    assert report.state == "COMPLETED", report.error
    # One more file, which nobody has read.
    late = pa.Table.from_pylist(rows_of_file(FILES))
    write_deltalake(str(case.table("raw.events")), late, mode="append")
    yield case
    forget_tables(spark)


def measures(case: PipelineCase, flow: str, name: str) -> list[Any]:
    """A measure of each batch of a flow that has read rows, in order."""
    batches = [
        (event["origin"]["batch_id"], event["details"]["flow_progress"].get("metrics") or {})
        for event in case.events(flow=flow, event_type="flow_progress")
        if event["origin"].get("batch_id") is not None
    ]
    return [metrics.get(name) for _, metrics in sorted(batches, key=lambda b: b[0]) if metrics.get("num_input_rows")]  # fmt: skip


def test_once_takes_all_there_is_within_the_limits(guide: PipelineCase):
    """`trigger: once` ends by itself and is no single batch: limits hold, as with available_now (features A125)."""
    assert len(measures(guide, NAMED, "num_input_rows")) == FILES


def test_a_name_in_three_parts(guide: PipelineCase):
    """The table is written and read by catalog, schema and name (features A114)."""
    assert len(guide.rows(NAMED)) == 6 * FILES
    assert len(guide.rows("in_three_parts")) == 6 * FILES
    live = guide.checkpoint(NAMED).live_folder()
    assert live.as_posix().endswith(f"checkpoints/{NAMED}/{NAMED}/0")
    assert {"commits", "offsets", "metadata"} <= {path.name for path in live.iterdir()}


def test_files_are_fewer_with_the_properties_of_the_guides(guide: PipelineCase):
    """`autoOptimize` gives a batch one file; without it a batch has as many as it has tasks (features A064)."""
    files = {
        name: len(DeltaTable(str(guide.table(name))).file_uris())
        for name in ("scattered", "optimized_stream")
    }
    assert files == {"scattered": 6, "optimized_stream": 1}
    assert len(guide.rows("optimized_stream")) == len(guide.rows("scattered")) == 6 * FILES


def test_changes_are_merged_by_a_sink(guide: PipelineCase):
    """`upsert_changes` in a function of a pipeline: the newest event of each user, NULL a user too, less those deleted (features A034)."""
    assert guide.rows("retail_db.silver", "user_id, event_id", "2") == [(None, "e2-"), ("u1", "e2-u1")]


def test_exact_distinct_counts(guide: PipelineCase):
    """The form that the refusal names gives closed windows the numbers of a batch's countDistinct; NULLs count in neither (features
    A078). Two stages: `test_pages_run`.
    """
    columns = "window_start, event_type, event_count, unique_users"
    exact = guide.rows("counted_as_a_batch", columns + ", unique_pairs", "window_start")[:-1]
    assert [row[2:] for row in exact] == [(6, 2, 1)] * (FILES - 1)
    assert guide.rows("hourly_event_counts", columns + ", unique_pairs", "window_start") == exact


def test_windows_of_five_minutes(guide: PipelineCase):
    """Tumbling and sliding windows are written when the watermark has passed them (features A116, A117)."""
    tumbling = guide.rows(
        "windowed_event_metrics", "platform, event_count, unique_users", "platform, event_count"
    )
    assert tumbling == [("web", 4, 1)] * (FILES - 1) + [(None, 2, 1)] * (FILES - 1)
    sliding = guide.rows("streaming_metrics", "event_count, unique_users, approx_sessions", "1, 2")
    # Minutes 1 and 2: a window of both begins at -2 to 1, one of a single minute before and after them.
    assert len(sliding) == 2 * 6 * (FILES - 1)
    assert sorted(set(sliding)) == [(1, 1, 1), (2, 1, 1), (2, 1, 2), (4, 1, 2)]


def test_state_is_bounded_where_a_watermark_takes_it_away(guide: PipelineCase):
    """Rows of state, batch by batch: without the event time in the key they grow for ever, else they stay (features A079, A119). Deduplication (A085, A118): exercise 4."""
    rows = {flow: measures(guide, flow, "state_rows") for flow in STREAMS}
    assert rows["unbounded_state"] == [3, 6, 9]
    assert rows["bounded_state"] == [3, 6, 6]
    assert max(rows["joined"][2:]) <= max(rows["joined"][:2])
    assert min(measures(guide, "unbounded_state", "state_bytes")) > 0


def test_the_join(guide: PipelineCase):
    """Each event meets the impressions of its user up to ten minutes before, however many there are; unknown users meet nobody (A119)."""
    assert len(guide.rows("joined")) == FILES * 2 * 3


def test_the_five_measures_of_a_batch(guide: PipelineCase):
    """Input rate, processing rate, duration, state and the watermark's lag are recorded for each batch (features A098)."""
    flow = "windowed_event_metrics"
    for name in ("processed_rows_per_second", "batch_duration_ms", "state_rows", "state_bytes"):
        assert all(value and value > 0 for value in measures(guide, flow, name)), name
    assert any(value and value > 0 for value in measures(guide, flow, "input_rows_per_second"))
    # A batch's watermark is that of the batch before.
    newest = START + timedelta(hours=3 * (FILES - 2), minutes=2)
    lag = (datetime.now(UTC) - (newest - timedelta(minutes=10))).total_seconds()
    first, *_, last = measures(guide, flow, "watermark_lag_seconds")
    assert first is None
    assert last == pytest.approx(lag, abs=120)


def test_what_is_not_read_yet(guide: PipelineCase):
    """The backlog of a Delta source is nothing after an update, and then what was committed since: files, bytes and rows."""
    (end,) = [
        metrics
        for event in guide.events(flow=NAMED, event_type="flow_progress")
        if (metrics := event["details"]["flow_progress"].get("metrics") or {}).get("backlog_files")
        is not None
    ][:1]
    assert (end["backlog_files"], end["backlog_bytes"], end["backlog_records"]) == (0, 0, 0)
    lags = pipeline_lag(guide.project(), stored_manifest(guide.project()))
    (backlog,) = [lag.backlog for lag in lags if lag.flow == NAMED]
    assert (backlog.files, backlog.records, backlog.versions) == (1, 6, 1)
    assert (backlog.bytes or 0) > 0


def test_a_flow_goes_on_from_given_offsets(guide: PipelineCase):
    """`repair --from-offsets` begins where it says: what lies behind is read again, and nothing else."""
    checkpoint = guide.checkpoint(NAMED)
    live = checkpoint.live_folder()
    position = committed_offsets(live)
    assert position is not None
    after_one = read_offsets(live, position.batch_id - 2).sources[0]
    arguments = (NAMED, "--action=new-epoch", f"--from-offsets=[{after_one}]", "--yes")
    code, answer = guide.call(main, *arguments, verb=("repair",))
    assert (code, answer["state"]) == (0, "COMPLETED"), answer
    report = guide.update(tables=[NAMED])
    assert report.state == "COMPLETED", report.error
    rows = guide.rows(NAMED, "event_id", "1")
    assert {row[0][:2]: rows.count(row) for row in rows} == {"e0": 2, "e1": 4, "e2": 4, "e3": 2}
