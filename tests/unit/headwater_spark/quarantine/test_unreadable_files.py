"""Which errors are about a file that can't be read, and how a query is made to leave files out."""

from __future__ import annotations

import pytest

from headwater_spark.quarantine.unreadable_files import (
    damaged_file,
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
