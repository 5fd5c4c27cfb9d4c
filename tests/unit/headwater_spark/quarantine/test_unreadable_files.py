"""Which errors are about a file that can't be read, and how a query is made to leave files out."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException
from pyspark.sql.types import StructType

from headwater_spark.quarantine import unreadable_files
from headwater_spark.quarantine.unreadable_files import StrictReader, damaged_file

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


class _Refusing:
    """A session whose JVM answers every call with an error."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    @property
    def _jvm(self):
        raise self.error


def test_a_size_that_cant_be_told_is_left_out_and_a_bug_is_not():
    """What the JVM throws is passed over; an error of our own code is not taken for it."""
    assert unreadable_files._size(_Refusing(Py4JError("gone")), "/a") is None
    with pytest.raises(AttributeError):
        unreadable_files._size(_Refusing(AttributeError("_jvm")), "/a")


def test_only_sparks_failures_tell_of_files():
    """A file is not called whole because our own code failed while it was looked at."""
    reader = StrictReader(None, "json", {}, StructType(), lambda error: [str(error)])
    with pytest.raises(AttributeError):
        reader.failure(["/a"])


def test_a_failure_of_spark_that_names_no_file(monkeypatch):
    """It says nothing about files, unless that is requested."""

    def failing(*_):
        raise AnalysisException("[X] It failed.")

    monkeypatch.setattr(StrictReader, "frame", failing)
    reader = StrictReader(None, "json", {}, StructType(), lambda error: [str(error)])
    assert reader.failure(["/a"]) is None
    with pytest.raises(AnalysisException):
        reader.failure(["/a"], others=True)
