"""A query without the files that can't be read: none of them is opened, and nothing else changes."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from headwater_spark.quarantine.unreadable_files import UnreadableFile, stream_leaves, without_files

# Quick where a session is there: they run each time.


def test_files_are_left_out_of_their_own_source(spark: SparkSession, tmp_path: Path):
    """The condition stands at the leaf of the source that has the file, below all that the query does; columns stay."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    rows = [spark.readStream.schema("id INT").json(str(tmp_path / name)) for name in ("a", "b")]
    frame = rows[0].groupBy("id").count().select("id").union(rows[1].select(F.upper("id").alias("id")))
    file = UnreadableFile(str(tmp_path / "b" / "x y.json"), 1, 0, 0, None, "")
    assert len(stream_leaves(frame)) == 2
    left = without_files(frame, [file])
    first, second = left._jdf.queryExecution().analyzed().toString().split("FileSource")[:2]
    assert "x%20y.json" not in first
    assert "x%20y.json" in second
    assert left.schema == frame.schema
    assert without_files(frame, []) is frame
