"""What to do about errors of Spark and Delta."""

from __future__ import annotations

from headwater_spark.hints import hint_for


def test_a_plain_stream_over_rows_that_change():
    """Who reads a target of AUTO CDC as a plain stream is told of its change feed, and of a materialized view."""
    hint = hint_for(
        "[DELTA_SOURCE_TABLE_IGNORE_CHANGES] Detected a data update (MERGE) in the source table at version 3."
    )
    assert hint is not None
    assert '.option("readChangeFeed", "true")' in hint
    assert "@dp.materialized_view" in hint
    assert hint_for("something else") is None
