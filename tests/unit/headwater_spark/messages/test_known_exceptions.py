"""What to do about errors of Spark and Delta."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headwater.errors import HELP_PAGE
from headwater_spark.messages.exception_text import causes_of
from headwater_spark.messages.known_exceptions import (
    CONFLICT,
    PASSING,
    REFUSED_RECORD,
    SOURCE_CHANGED,
    TARGET_CHANGED,
    hint_for,
    shows,
)

# delta-rs shows what an error comes from in colours.
ARROW = "\x1b[31m↳\x1b[0m"
PAGE = Path(__file__).resolve().parents[4] / HELP_PAGE


@pytest.mark.parametrize(
    ("said", "condition"),
    [
        ("SparkException: [STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] Provided key schema", "PLAN_CHANGED"),
        (
            "SparkException: [STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA] Streaming stateful",
            "PLAN_CHANGED",
        ),
        (
            "SparkException: [CANNOT_LOAD_STATE_STORE.CANNOT_READ_DELTA_FILE_NOT_EXISTS] An error",
            "STATE_LOST",
        ),
        (
            "SparkException: [STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY] Cannot restart",
            "STATE_LOST",
        ),
        ("RocksDBException: block checksum mismatch: stored = 1, computed = 2, type = 4", "STATE_DAMAGED"),
        (
            "IllegalStateException: Failed to read log file /c/offsets/4. Incomplete log file",
            "OFFSETS_DAMAGED",
        ),
        (
            "SparkException: [INVALID_LOG_VERSION.MAX_SUPPORTED_VERSION] UnsupportedLogVersion",
            "OFFSETS_TOO_NEW",
        ),
        ("IllegalStateException: batch 3 doesn't exist", "OFFSETS_LOST"),
        (
            "SparkException: [DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE] The streaming query",
            "SOURCE_REPLACED",
        ),
        (
            "SparkException: [DELTA_MISSING_FILES_UNEXPECTED_VERSION] The stream from your Delta table",
            "SOURCE_LOG_CUT",
        ),
        ("SparkException: [DELTA_STREAMING_TRAILING_COMMIT_MISSING]", "SOURCE_LOG_CUT"),
        ("SparkException: [DELTA_VERSIONS_NOT_CONTIGUOUS] Versions (1, 3)", "SOURCE_LOG_HOLE"),
        ("SparkException: [FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error", "SOURCE_FILES_GONE"),
    ],
)
def test_errors_of_spark_have_our_names(said: str, condition: str):
    """The hint names the condition and its section, which is there."""
    hint = hint_for(causes_of([said]))
    assert hint is not None
    assert f"{HELP_PAGE}#{condition.lower()}" in hint
    assert re.search(rf"^### {condition}$", PAGE.read_text(), re.MULTILINE)


def test_other_errors_have_none():
    """Nothing is claimed of errors that are about something else."""
    assert hint_for(causes_of(["AnalysisException: [UNRESOLVED_COLUMN] no such column"])) is None


def test_a_plain_stream_over_rows_that_change():
    """For a plain stream of a target of AUTO CDC the remedy names its change feed, and a materialized view."""
    hint = hint_for(
        causes_of(
            [
                "X: [DELTA_SOURCE_TABLE_IGNORE_CHANGES] Detected a data update (MERGE) in the source table at version 3."
            ]
        )
    )
    assert hint is not None
    assert '.option("readChangeFeed", "true")' in hint
    assert "@dp.materialized_view" in hint
    assert hint_for(causes_of(["IllegalStateException: something else"])) is None


@pytest.mark.parametrize(
    "said",
    [
        "UnknownStoreException: s3://b/: getFileStatus on s3://b/: NoSuchBucketException",
        "AWSRedirectException: getBucket on b: The bucket is in this region: eu-west-1",
        "NoAuthWithAWSException: No AWS Credentials provided",
        "NoAwsCredentialsException: No AWS credentials in the Hadoop configuration",
        "CredentialInitializationException: x",
    ],
)
def test_what_spark_is_refused_by_a_store(said: str):
    """It names the section that says what to check."""
    hint = hint_for(causes_of(["StreamingQueryException: [STREAM_FAILED] x", said]))
    assert hint is not None
    assert f"{HELP_PAGE}#store_refused" in hint
    assert re.search(r"^### STORE_REFUSED$", PAGE.read_text(), re.MULTILINE)


@pytest.mark.parametrize(
    ("text", "signs"),
    [
        ("DeltaStreamingException: [DELTA_SCHEMA_CHANGED.VERSION] x", [SOURCE_CHANGED]),
        ("DeltaRuntimeException: [DELTA_STREAMING_METADATA_EVOLUTION] x", [SOURCE_CHANGED]),
        ("AssertionError: assertion failed: Invalid batch: a, b", [SOURCE_CHANGED]),
        ("RuntimeException: assertion failed: Invalid batch: a, b", []),
        ("MetadataChangedException: [DELTA_METADATA_CHANGED] x", [TARGET_CHANGED, PASSING]),
        ("ConcurrentAppendException: [DELTA_CONCURRENT_APPEND.WITHOUT_HINT] x", [CONFLICT, PASSING]),
        ("BadRecordException: [MALFORMED_RECORD_IN_PARSING] x", [REFUSED_RECORD]),
        ("ValueError: [DELTA_CONCURRENT", []),
        ("AWSServiceThrottledException: PUT 0-byte object on a: S3Exception: Slow down (503)", [PASSING]),
        ("AWSStatus500Exception: open s3://b/a: S3Exception: We encountered an internal error", [PASSING]),
        ("AWSNoResponseException: x", [PASSING]),
        ("HttpChannelEOFException: x: The target server failed to respond", [PASSING]),
        (
            "AWSClientIOException: getFileStatus on s3://b/a: software.amazon.awssdk.core.exception.SdkClientException: Unable to "
            "execute HTTP request: Acquire operation took longer than the configured maximum time",
            [PASSING],
        ),
        (
            "SdkClientException: Unable to execute HTTP request: The target server failed to respond",
            [PASSING],
        ),
        (
            "AWSClientIOException: x: SdkClientException: Unable to load credentials from any of the providers",
            [],
        ),
        ("RuntimeException: Unable to execute HTTP request: a row said so", []),
        (
            f"OSError: Kernel error -> Generic S3 error\n  {ARROW} Error performing GET http://s/b/t/_delta_log/_last_checkpoint in "
            f"232.74071ms, after 10 retries, max_retries\n   {ARROW} 10, retry_timeout\n    {ARROW} 180s  - Server returned non-2xx status "
            f"code\n     {ARROW} 503 Service Unavailable\n",
            [PASSING],
        ),
        (
            f"OSError: Generic S3 error\n  {ARROW} Error performing list request\n   {ARROW} Error performing GET http://s/b?prefix=t in "
            f"187s, after 1 retries, max_retries\n    {ARROW} 10, retry_timeout\n     {ARROW} 180s  - HTTP error\n",
            [PASSING],
        ),
        (
            f"OSError: Kernel error -> Generic S3 error\n  {ARROW} Error performing GET http://s/b/t in 628.908µs - Server returned "
            f"non-2xx status code\n   {ARROW} 400 Bad Request\n",
            [],
        ),
        ("ValueError: Generic S3 error\n, after 10 retries, max_retries", []),
        ("UnknownStoreException: s3://b/: getFileStatus on s3://b/: NoSuchBucketException", []),
        ("AccessDeniedException: s3://b/a: 403", []),
    ],
)
def test_signs(text: str, signs: list):
    """Each exception has its signs and no others."""
    every = (SOURCE_CHANGED, TARGET_CHANGED, CONFLICT, PASSING, REFUSED_RECORD)
    assert [sign for sign in every if shows(causes_of([text]), sign)] == signs


@pytest.mark.parametrize(
    "said",
    [
        'IOException: Cannot run program "/opt/python3": error=2, No such file or directory',
        "SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, most recent failure: Lost task 0.3 in "
        'stage 1.0 (TID 6) (127.0.0.1 executor 0): java.io.IOException: Cannot run program "python3.11": error=2',
        'PythonException: Traceback (most recent call last):\n  File "worker.py", line 1, in main\n'
        "pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9",
    ],
)
def test_executors_without_the_right_python_are_named(said: str):
    """The advice is the setting, and not to look into the query."""
    hint = hint_for(causes_of([said]))
    assert hint is not None
    assert "`cluster: {python: PATH}`" in hint
    assert (
        hint_for(
            causes_of([said.replace("Cannot run", "A record says: Cannot run").replace("MISMATCH", "X")])
        )
        is None
    )


def test_a_prefix_without_objects():
    """What a missing folder on S3 needs is said; one on a disk needs other things."""
    said = "AnalysisException: [PATH_NOT_FOUND] Path does not exist: {}. SQLSTATE: 42K03"
    hint = hint_for(causes_of([said.format("s3://raw/landing")]))
    assert hint is not None
    assert "upload the first file" in hint
    assert "Make the folder" in (hint_for(causes_of([said.format("file:/data/landing")])) or "")
    unknown = 'UnsupportedFileSystemException: No FileSystem for scheme "dbfs"'
    assert "closed platform's file system" in (hint_for(causes_of([unknown])) or "")


def test_another_folder_than_before():
    """Spark's words about a base path say nothing of what was changed; a record that has these words decides nothing."""
    said = "IllegalArgumentException: Wrong basePath /landing/b for the root path: file:/landing/a/00001.json"
    assert "a flow of its own" in (hint_for(causes_of([said])) or "")
    assert hint_for(causes_of(["SparkRuntimeException: Wrong basePath /x for the root path: y"])) is None


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ('SparkNoSuchElementException: [SQL_CONF_NOT_FOUND] The SQL config "catalog" cannot be found.', "under `configuration` in pipeline.yml"),
        ("AnalysisException: [TABLE_OR_VIEW_NOT_FOUND] The table or view `silver` cannot be found.", "No dataset of this pipeline"),
        ("AnalysisException: [REQUIRES_SINGLE_PART_NAMESPACE] got identifier `main`.`lib`.`f`.", "spark.udf.register"),
        ("AnalysisException: [UNRESOLVED_ROUTINE] Cannot resolve routine `f` on search path", "spark.udf.register"),
        ("AnalysisException: [REQUIRES_SINGLE_PART_NAMESPACE] spark_catalog requires a single-part namespace", "catalog.schema.table"),
    ],
)  # fmt: skip
def test_names_that_are_not_there(said: str, what: str) -> None:
    """A setting or a table that a definition names and nobody gives: what to do says where it would be looked for."""
    assert what in (hint_for(causes_of([said])) or "")


@pytest.mark.parametrize(
    "said",
    [
        "AnalysisException: [DELTA_PATH_EXISTS] Cannot write to already existent path file:/lake/first without setting OVERWRITE = 'true'.",
        "DeltaAnalysisException: [DELTA_TABLE_ALREADY_EXISTS] Table `lake`.`first` already exists.",
        "AnalysisException: [TABLE_OR_VIEW_ALREADY_EXISTS] Cannot create table or view `lake`.`first` because it already exists.",
    ],
)
def test_a_batch_that_is_written_without_a_mode(said: str):
    """Guides' functions of a sink leave the mode out: the first batch makes the table, and the second one can't."""
    hint = hint_for(causes_of([said]))
    assert hint is not None
    assert '.mode("append")' in hint


@pytest.mark.parametrize(
    ("said", "condition"),
    [
        ("FileNotFoundError: Object at location lake/scd2/part-00002-3e6b.c000.snappy.parquet not found", "TABLE_FILES_GONE"),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/lake/scd2/part-00002-3e6b.c000.snappy.parquet'", "TABLE_FILES_GONE"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'rates.csv'", None),
    ],
)  # fmt: skip
def test_a_file_of_a_table_that_the_driver_misses(said: str, condition: str | None):
    """A file that a merge of the driver reads and that is gone is one of the table; a file that a source's code opens is not."""
    hint = hint_for(causes_of([said]))
    assert hint is None if condition is None else hint is not None and condition in hint
