"""Which errors are about a file that can't be read, and how a query is made to leave files out."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from headwater_spark.quarantine.unreadable_files import (
    UnreadableFile,
    damaged_file,
    stream_leaves,
    without_files,
)

TEXT = "SparkException: [FAILED_READ_FILE.{}] Encountered error while reading file {}.  SQLSTATE: KD001"
ERRORS = {
    "cut off": ([TEXT.format("NO_HINT", "file:///in/a%20b.json.gz"), "EOFException: end"], "/in/a b.json.gz"),
    "a footer": ([TEXT.format("CANNOT_READ_FILE_FOOTER", "file:/in/a.parquet")], "/in/a.parquet"),
    "elsewhere": ([TEXT.format("NO_HINT", "s3a://b/a.json")], "s3a://b/a.json"),
    "a row that FAILFAST refuses": (
        [TEXT.format("NO_HINT", "file:///in/a.json"), "SparkException: [MALFORMED_RECORD_IN_PARSING.X] no"],
        None,
    ),
    "another type": ([TEXT.format("PARQUET_COLUMN_DATA_TYPE_MISMATCH", "file:///in/a.parquet")], None),
    "gone": ([TEXT.format("FILE_NOT_EXIST", "file:///in/a.json")], None),
    "something else": (["SparkException: [DIVIDE_BY_ZERO] no"], None),
}


@pytest.mark.parametrize(("messages", "path"), ERRORS.values(), ids=ERRORS)
def test_which_errors_are_about_a_damaged_file(messages: list[str], path: str | None):
    """The file is named where its bytes are at fault, and only there."""
    assert damaged_file(messages) == path


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
