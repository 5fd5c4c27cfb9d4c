"""Which streams are stateful, by their plan."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from headwater.errors import QueryFailed
from headwater_spark.plans.stateful_queries import is_stateful

pytestmark = pytest.mark.usefixtures("adaptive")

# Quick where a session is there: they run each time.

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
