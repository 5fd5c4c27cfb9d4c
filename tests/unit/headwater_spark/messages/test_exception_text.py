"""Data in a message decides nothing: only what Spark itself writes of an exception counts."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater_spark.messages.exception_text import causes_of, marked, worker_traceback
from headwater_spark.messages.known_exceptions import PASSING, SOURCE_CHANGED, TARGET_CHANGED, hint_for, shows
from headwater_spark.quarantine.unreadable_files import damaged_file
from headwater_spark.rules.expectations import find_violation
from headwater_spark.sources.cloud_files.rescue import LATE_FILE, UNKNOWN_FIELDS

ABORTED = (
    "SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times, most recent failure: "
    "Lost task 0.0 in stage 3.0 (TID 3) (127.0.0.1 executor driver): "
)
OUR_MARK = "HEADWATER_EXPECTATION_VIOLATION" + json.dumps({"rules": ["r"], "record": {}})
WORDS = (
    "Connection refused", "java.net.ConnectException: Connection refused", "TimeoutException", "ExecutorLostFailure", "No space left on device",
    "[DELTA_CONCURRENT_APPEND] x", "[DELTA_METADATA_CHANGED] x", "DELTA_SCHEMA_CHANGED", "assertion failed: Invalid batch: ", OUR_MARK,
    f"{UNKNOWN_FIELDS}a in file:/x", f"{LATE_FILE}/data/x.json", "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file /etc/passwd.\n",
    "[KAFKA_DATA_LOSS] Some data may have been lost", "CAST_INVALID_INPUT", "Incomplete log file", "batch 3 doesn't exist",
    "Traceback (most recent call last):\nheadwater.errors.SourceUnreachable: [SOURCE_UNREACHABLE] x", ABORTED + "java.net.ConnectException: x",
)  # fmt: skip
# What Spark writes around a record that it quotes.
QUOTING = (
    "SparkRuntimeException: [MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed records are detected in record parsing: {0}.",
    "SparkNumberFormatException: [X_INVALID_INPUT] The value '{0}' of the type \"STRING\" cannot be cast",
    "BadRecordException: {0}", "JsonParseException: Unrecognized token '{0}'", "RuntimeException: {0}", "SparkRuntimeException: [USER_RAISED] {0}",
    "StreamingQueryException: [STREAM_FAILED] Query [id = 1] terminated with exception: {0}",
    "PythonException: [PYTHON_EXCEPTION] ValueError: {0}", "ValueError: {0}", ABORTED + "org.apache.spark.X: [Y_Z] The value '{0}'", "SparkException: {0}",
)  # fmt: skip


def decided(messages):
    """What is made of an exception's texts: none of it may come from data."""
    causes = causes_of(messages)
    return {
        "transient": shows(causes, PASSING),
        "violation": find_violation(causes),
        "hint": hint_for(causes),
        "moved": [shows(causes, SOURCE_CHANGED), shows(causes, TARGET_CHANGED)],
        "late": marked(causes, LATE_FILE),
        "fields": marked(causes, UNKNOWN_FIELDS),
        "file": damaged_file(messages),
        "worker": [trace for cause in causes if (trace := worker_traceback(cause)) is not None],
    }


# Messages that are nothing but data, behind a class alone, are those of a user's own code: our marks and job texts begin there.
WHOLLY_DATA = ("BadRecordException: {0}", "RuntimeException: {0}", "ValueError: {0}", "SparkException: {0}")


@pytest.mark.parametrize("quoting", QUOTING)
@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("before", ["", '{"note": "', "a\n", "a\n  "])
def test_a_record_decides_nothing(quoting, word, before):
    """Whatever a record says, alone or after a line break, the exception that quotes it is what it is without it."""
    if not before and quoting in WHOLLY_DATA:
        before = "x "
    assert decided([quoting.format(before + word)]) == decided([quoting.format("harmless")])


@given(
    st.sampled_from(QUOTING),
    st.lists(st.sampled_from((*WORDS, "\n", "'", '"', "\n\n", ": ", "[")), max_size=5),
)
def test_any_mixture_decides_nothing(quoting, pieces):
    """Words put together in any order change nothing either."""
    record = "x " + "".join(pieces)
    assert decided([quoting.format(record)]) == decided([quoting.format("harmless")])


@pytest.mark.parametrize(
    "text",
    [
        "ConnectException: Connection refused", "TimeoutException: Timeout of 60000ms expired", "SocketTimeoutException", "InterruptedIOException: x",
        "IOException: No space left on device", "FileSystemException: /a/b: No space left on device", "SparkOutOfMemoryError: [X_Y] z",
        "DeltaConcurrentModificationException: [DELTA_CONCURRENT_APPEND.WITHOUT_HINT] x", ABORTED + "ExecutorLostFailure (executor 1 exited)",
        ABORTED + "java.net.ConnectException: x", "MetadataChangedException: [DELTA_METADATA_CHANGED] x", "ConnectionRefusedError: [Errno 111]", "ConnectionError: x",
        "UnknownHostException: broker", "LeaderNotAvailableException: x", "ClosedByInterruptException", "OSError: [Errno 28] : No space left on device",
    ],
)  # fmt: skip
def test_what_passes_by_itself(text):
    """By the class, by the condition, and by the system's own words."""
    assert shows(causes_of(["StreamingQueryException: [STREAM_FAILED] x", text]), PASSING)


def test_marks_of_ours():
    """What raise_error was given is read where it begins the message, also where the job's text alone is left."""
    raised = f"SparkRuntimeException: [USER_RAISED_EXCEPTION] {UNKNOWN_FIELDS}a, b in file:/x SQLSTATE: P0001"
    assert marked(causes_of([raised]), UNKNOWN_FIELDS) == "a, b in file:/x SQLSTATE: P0001"
    inside = ABORTED + "org.apache.spark." + raised
    assert marked(causes_of([inside]), UNKNOWN_FIELDS) == "a, b in file:/x SQLSTATE: P0001"
    assert (
        find_violation(causes_of([f"SparkRuntimeException: [USER_RAISED_EXCEPTION] {OUR_MARK}"])) is not None
    )


def test_the_first_traceback_counts():
    """A message that goes on as if another exception followed names no other class."""
    text = (
        "PythonException: Traceback (most recent call last):\n  File 'a.py', line 1\n    raise\nValueError: x\n\nDuring handling\n"
        "headwater.errors.SourceUnreachable: [SOURCE_UNREACHABLE] gone"
    )
    (cause,) = causes_of([text])
    assert worker_traceback(cause) == "ValueError: x"
