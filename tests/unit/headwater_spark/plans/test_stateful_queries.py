"""Which settings a stateful flow keeps, and which streams are stateful."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from headwater.errors import QueryFailed
from headwater_spark.plans.stateful_queries import (
    PARTITIONS,
    PROVIDER,
    is_stateful,
    overruled,
    state_settings,
)

QUERIES = {
    "rows": (lambda rows: rows.where("value > 1"), False),
    "watermark alone": (lambda rows: rows.withWatermark("timestamp", "1 minute"), False),
    "aggregation": (lambda rows: rows.groupBy("value").count(), True),
    "sessions": (lambda rows: rows.groupBy(F.session_window("timestamp", "1 minute")).count(), True),
    "deduplication": (lambda rows: rows.dropDuplicates(["value"]), True),
    "bounded deduplication": (
        lambda rows: rows.withWatermark("timestamp", "1 minute").dropDuplicatesWithinWatermark(["value"]),
        True,
    ),
    "distinct": (lambda rows: rows.distinct(), True),
    "limit": (lambda rows: rows.limit(3), True),
    "join of streams": (lambda rows: rows.join(rows.select("value"), "value"), True),
    "join of a batch": (
        lambda rows: rows.join(rows.sparkSession.range(3).groupBy("id").count(), rows.value == F.col("id")),
        False,
    ),
}


@pytest.mark.parametrize("name", QUERIES)
def test_which_streams_keep_state(spark, name):
    """State is kept by operations over the stream, not by those over a batch that it joins."""
    query, stateful = QUERIES[name]
    stream = spark.readStream.format("rate").load()
    assert is_stateful(query(stream)) is stateful
    assert not is_stateful(spark.range(3).distinct())


def test_what_a_join_of_streams_needs(pipeline):
    """An outer join of streams that could never be answered is refused with what it lacks."""
    case = pipeline("""
@dp.table
def matches():
    left, right = (spark.readStream.format("rate").load() for _ in range(2))
    return left.join(right.withColumnRenamed("timestamp", "at"), "value", "left_outer")
""")
    with pytest.raises(QueryFailed) as caught:
        case.manifest()
    assert "withWatermark" in caught.value.remedy
    assert "BETWEEN" in caught.value.remedy


def test_the_first_settings_stand():
    """What was recorded is not touched by later wishes."""
    first = state_settings({}, {PARTITIONS: "7", PROVIDER: "some.Store"})
    assert first == {PARTITIONS: "7", PROVIDER: "some.Store"}
    assert state_settings(first, {PARTITIONS: "9", PROVIDER: None}) == first


def test_only_what_is_asked_for_is_overruled():
    """A setting that nobody gives, or that is as it was, is no news."""
    kept = state_settings({}, {PARTITIONS: "7", PROVIDER: "some.Store"})
    assert overruled(kept, {PARTITIONS: "9", "spark.other": "1"}) == {PARTITIONS: "9"}
    assert overruled(kept, {PARTITIONS: "7", PROVIDER: "some.Store"}) == {}
    assert overruled({}, {PARTITIONS: "9"}) == {}


def test_settings_left_to_us():
    """RocksDB, and Spark's own number of partitions."""
    chosen = state_settings({}, {PARTITIONS: None, PROVIDER: None})
    assert chosen[PARTITIONS] == "200"
    assert chosen[PROVIDER].endswith("RocksDBStateStoreProvider")
