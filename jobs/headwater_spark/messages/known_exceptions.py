"""The exceptions of Spark, Delta and Kafka that pipelines meet: what each means, and what to do about it.

This is the only table: every decision about a failure (is it transient, does a restart help, what is the advice) uses it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headwater.errors import HELP_PAGE
from headwater.metrics.file_listing import NO_FOLDER
from headwater_spark.messages.exception_text import Cause, worker_traceback


@dataclass(frozen=True)
class Sign:
    """How an exception is recognized: by all parts that are set of its class, the start of its condition, and its message.

    A message is used only where Spark, Delta or the system wrote all of it (decision 0138).
    """

    kind: str = ""
    condition: str = ""
    message: str = ""

    def fits(self, cause: Cause) -> bool:
        """Whether the exception is one of these."""
        return (
            re.search(self.kind, cause.kind) is not None
            and re.match(self.condition, cause.condition) is not None
            and re.search(self.message, cause.message) is not None
        )


# Another writer committed in between; the same rows can be retried.
CONFLICT = (Sign(condition="DELTA_CONCURRENT"),)
# Another flow changed the columns of the table; nothing was committed, and the batch is repeated.
TARGET_CHANGED = (Sign(condition="DELTA_METADATA_CHANGED"),)
# The columns of a source table changed after the query was built, or while it ran. A tracked schema evolves this way, too.
SOURCE_CHANGED = (
    Sign(
        condition="DELTA_SCHEMA_CHANGED|DELTA_STREAMING_METADATA_EVOLUTION|DELTA_STREAMING_SCHEMA_(?:EVOLUTION|MISMATCH)"
    ),
    Sign(kind="^AssertionError$", message=r"\Aassertion failed: Invalid batch: "),
)
# A column's name has a sign that files can't have in theirs, and the table has no column mapping.
SPECIAL_NAME = (Sign(condition="DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"),)
# A record that FAILFAST refuses; its file is intact.
REFUSED_RECORD = (Sign(condition="MALFORMED_RECORD_IN_PARSING"),)
# Transient: a retry may succeed.
PASSING = (
    *CONFLICT,
    *TARGET_CHANGED,
    Sign(condition="CONCURRENT_STREAM_LOG_UPDATE"),
    Sign(
        r"(?:Timeout|Connect|UnknownHost|Socket|NoRouteToHost|BrokerNotAvailable|Disconnect|LeaderNotAvailable|Interrupted|NoBrokersAvailable)"
        r"(?:ed|IO)?(?:Exception|Error)$|^ClosedByInterruptException$|^Connection(?:Refused|Reset|Aborted)?Error$|^ExecutorLost|^SparkOutOfMemory"
    ),
    # Hadoop's client of S3: the store asked for a pause, answered with an error of its own, or not at all.
    Sign(kind=r"^AWS(?:ServiceThrottled|Status500|NoResponse)Exception$|^HttpChannelEOFException$"),
    Sign(
        kind="^(?:AWSClientIOException|SdkClientException)$",
        message=r"(?:\A|: software\.amazon\.awssdk\.core\.exception\.SdkClientException: )Unable to execute HTTP request: ",
    ),
    # delta-rs: it names its retries only where the store did not answer, or answered with an error of its own.
    Sign(
        kind="^(?:OSError|DeltaError)$",
        message=r"\A(?:Kernel error -> )?Generic \w+ error\n[\s\S]*, after \d+ retries, max_retries\b",
    ),
    # The system's own words, in exceptions that carry nothing else.
    Sign(
        kind="^(?:IOException|FileSystemException|FSError|OSError)$",
        message="(?:^|: )(?:No space left on device|Connection refused)(?: |$)",
    ),
)


# An executor has no such program, or a Python of another version than the driver.
_NO_PYTHON = (Sign(kind="^IOException$", message=r'\ACannot run program "'),)
_OTHER_PYTHON = "pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH]"
_CLUSTER_PYTHON = (
    "Executors run another Python than they should, or have none: name one of the driver's version, with pyspark and what the sources "
    "import, at the same path on all workers, by `cluster: {python: PATH}` in pipeline.yml (docs/clusters.md)."
)


def shows(causes: Iterable[Cause], signs: Sequence[Sign]) -> bool:
    """Whether an exception of the chain has one of the signs."""
    return any(sign.fits(cause) for cause in causes for sign in signs)


# A file stream reads its last batch again when it starts, below the folder that the read names now; Spark wrote all of the message.
_OTHER_FOLDER = (Sign(kind="^IllegalArgumentException$", message=r"\AWrong basePath "),)
_ONE_FOLDER_A_FLOW = (
    "The flow has read files from another folder, and goes on from there. Put the folder back and give the new one a flow of its own "
    "(dp.append_flow); or name a folder or pattern above both; or refill the table with --full-refresh."
)
_HINTS = (
    (re.compile(r"FAILED_READ_FILE\.(?:NO_HINT|CANNOT_READ_FILE_FOOTER)(?!.*MALFORMED_RECORD_IN_PARSING)", re.DOTALL),
     "The file can't be read to its end. Replace it with an intact one, or move it away; with a rule that quarantines "
     "(dp.expect_or_quarantine) on the table such files are kept out, and the flow goes on."),
    (re.compile(r"UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE"),
     "A Delta table has no column of that type. Cast it in the query: an interval to text (CAST(x AS STRING)), to seconds or to months; "
     "or leave the column out."),
    (re.compile(r"CAST_INVALID_INPUT"), "Use try_cast in the query or rule, or set spark.sql.ansi.enabled: false under `configuration`."),
    (re.compile(r"DIVIDE_BY_ZERO"), "Use try_divide in the query or rule, or set spark.sql.ansi.enabled: false under `configuration`."),
    (re.compile(r"DELTA_SOURCE_TABLE_IGNORE_CHANGES|DELTA_SOURCE_IGNORE_DELETE"),
     'The source table was changed, not only appended to. Follow its changes with .option("readChangeFeed", "true"), read it as a '
     'whole in a @dp.materialized_view, or pass over the changes with .option("skipChangeCommits", "true").'),
    (re.compile(r"Some data may have been lost|KAFKA_DATA_LOSS"),
     "The topic was recreated or its records have expired. Refill the table with --full-refresh, or take the loss with "
     '.option("failOnDataLoss", "false").'),
    (re.compile(r"\b(?:DELTA_PATH_EXISTS|DELTA_TABLE_ALREADY_EXISTS|TABLE_OR_VIEW_ALREADY_EXISTS)\b"),
     'A write without a mode makes a table and is an error where there is one: the first batch succeeds, the second one does not. Add '
     '.mode("append") to the write.'),
    (re.compile(r"DELTA_METADATA_MISMATCH|DELTA_FAILED_TO_MERGE_FIELDS"),
     "The query's columns no longer fit the table. Cast them in the query, or refill the table with --full-refresh."),
    (re.compile(r"CHANGE_TABLE_FEED_DISABLED|MISSING_CHANGE_DATA|[Cc]hange data (?:feed )?(?:was|is) not"),
     "The change feed knows only what was written while it was on. Turn it on (ALTER TABLE ... SET TBLPROPERTIES "
     "(delta.enableChangeDataFeed = true)), and read from the version of that commit on: "
     '.option("startingVersion", N).'),
    (re.compile(r"DELTA_TIMESTAMP_GREATER_THAN_COMMIT|DELTA_CDC_START_VERSION_AFTER_LATEST|DELTA_INVALID_CDC_RANGE"),
     "The table has no commit that late. Give a time or version up to its last commit; a stream that starts at the next one "
     'is .option("startingVersion", "latest").'),
    (re.compile(r"DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE|DELTA_STREAMING_SCHEMA|DELTA_SCHEMA_CHANGED|BLOCK_COLUMN_MAPPING"),
     "Columns of the source table were renamed, removed or retyped. Refill the table with --full-refresh, or keep its columns "
     'and the rest as JSON, with .option("rescuedDataColumn", "_rescued_data") on the read.'),
    (re.compile(r"INVALID_EXTRACT_(?:BASE_FIELD_TYPE|FIELD)|Can't extract a value"),
     "The column is not a struct. cloudFiles gives nested JSON as text by default: "
     '.option("cloudFiles.inferColumnTypes", "true"), or name the type with cloudFiles.schemaHints; text is taken apart with '
     "F.get_json_object or F.from_json."),
    (re.compile(r"\bSQL_CONF_NOT_FOUND\b"),
     "The configuration has no such value. Give it one, under `configuration` in pipeline.yml or by --param NAME=VALUE, or take a default: "
     'spark.conf.get("NAME", "VALUE").'),
    (re.compile(r"\b(?:TABLE_OR_VIEW_NOT_FOUND|REQUIRES_SINGLE_PART_NAMESPACE)\b"),
     "No dataset of this pipeline has that name, and no table of the warehouse (schema.table or catalog.schema.table). Correct it, or name "
     "a folder: delta.`/path/of/the/table`. A function of a catalog is not there either: register it in a Python source, "
     "spark.udf.register('f', f, 'bigint'), and call it without catalog and schema."),
    (re.compile(r"\bUNRESOLVED_ROUTINE\b"),
     "Open Spark has no function of that name, and functions of a catalog are not there. Register it in a Python source, "
     "spark.udf.register('f', f, 'bigint'), and call it by that name, in SQL sources too."),
    (re.compile(r"PATH_NOT_FOUND.*\bs3://", re.DOTALL),
     "Nothing lies at or below that address yet. Check bucket and prefix, or upload the first file; an empty object with the "
     "prefix's name and a slash at its end marks an empty folder."),
    (re.compile(r"\bPATH_NOT_FOUND\b"), NO_FOLDER),
    (re.compile(r"^UnsupportedFileSystemException:", re.MULTILINE),
     "Spark has no client for addresses of that kind here. `dbfs:` is the closed platform's file system: name the folder as this machine has it, "
     "or s3://bucket/folder."),
    (re.compile(r"^(?:UnknownStore|AWSRedirect|NoAuthWithAWS|NoAwsCredentials|CredentialInitialization)Exception:", re.MULTILINE),
     f"Spark was refused by the object store. Check the bucket, `object_store` (endpoint, region) in pipeline.yml, and the "
     f"credentials in the environment of the driver and of executors ({HELP_PAGE}#store_refused)."),
    (re.compile(r"TABLE_VALUED_FUNCTION.*read_files|read_files.*TABLE_VALUED_FUNCTION", re.DOTALL),
     "read_files is taken in the text of spark.sql of a dataset's function: SELECT * FROM STREAM read_files('/data/landing', "
     "format => 'json'). Elsewhere read with spark.readStream.format(\"cloudFiles\")."),
)  # fmt: skip


# Messages of Spark and Delta about damage that occurred after the preflight checks, or that these do not detect.
_CONDITIONS = (
    (re.compile(r"STATE_STORE_(?:KEY|VALUE)_SCHEMA_NOT_COMPATIBLE|NOT_MATCH_IN_STATE_METADATA"), "PLAN_CHANGED"),
    (re.compile(r"CANNOT_LOAD_STATE_STORE|MISSING_STATE_DIRECTORY"), "STATE_LOST"),
    (re.compile(r"CHECKSUM_VERIFICATION_FAILED"), "STATE_DAMAGED"),
    (re.compile(r"Incomplete log file|MALFORMED_LOG_FILE|ChecksumException"), "OFFSETS_DAMAGED"),
    (re.compile(r"INVALID_LOG_VERSION"), "OFFSETS_TOO_NEW"),
    (re.compile(r"batch \d+ doesn't exist"), "OFFSETS_LOST"),
    (re.compile(r"MISSING_METADATA_FILE"), "METADATA_LOST"),
    (re.compile(r"sources in the checkpoint offsets and now there are"), "SOURCES_CHANGED"),
    (re.compile(r"DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"), "SOURCE_REPLACED"),
    (re.compile(r"LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE|MISSING_FILES_UNEXPECTED_VERSION|TRAILING_COMMIT_MISSING"),
     "SOURCE_LOG_CUT"),
    (re.compile(r"DELTA_VERSIONS_NOT_CONTIGUOUS"), "SOURCE_LOG_HOLE"),
    (re.compile(r"FAILED_READ_FILE\.FILE_NOT_EXIST|java\.io\.FileNotFoundException"), "SOURCE_FILES_GONE"),
    # The driver itself reads the files of the table that it writes.
    (re.compile(r"^FileNotFoundError: .*\bpart-\S+\.parquet\b", re.MULTILINE), "TABLE_FILES_GONE"),
)  # fmt: skip


# RocksDB compares each block of its files as it reads it, and writes all of the message.
_BAD_BLOCK = (Sign(kind="^RocksDBException$", message=r"checksum mismatch|[Cc]orrupt"),)
# Exceptions about logs, plans and offsets: none quotes a record. Of all others only class and condition are used, since
# otherwise records could determine the advice.
_WITHOUT_RECORDS = re.compile(
    r"^(?:AnalysisException|ExtendedAnalysisException|ParseException|AssertionError|IllegalStateException|FileNotFoundException|FileNotFoundError|Delta\w+)$"
)


def hint_for(causes: Sequence[Cause]) -> str | None:
    """What to do about an exception and its causes, None where nothing special is known."""
    endings = filter(None, map(worker_traceback, causes))
    if shows(causes, _NO_PYTHON) or any(ending.startswith(_OTHER_PYTHON) for ending in endings):
        return _CLUSTER_PYTHON
    if shows(causes, _OTHER_FOLDER):
        return _ONE_FOLDER_A_FLOW
    text = "\n".join(map(_outline, causes))
    hint = next((hint for pattern, hint in _HINTS if pattern.search(text)), None)
    if hint is not None:
        return hint
    condition = next((name for pattern, name in _CONDITIONS if pattern.search(text)), None)
    condition = "STATE_DAMAGED" if shows(causes, _BAD_BLOCK) else condition
    if condition is None:
        return None
    return (
        f"This is {condition} ({HELP_PAGE}#{condition.lower()}). `headwater checkpoints diagnose PIPELINE_DIR` lists what can be "
        "done, and what each remedy would cost."
    )


def _outline(cause: Cause) -> str:
    """The part of an exception's text that Spark itself wrote."""
    package = "java.io." if cause.kind == "FileNotFoundException" else ""
    said = cause.rest if _WITHOUT_RECORDS.match(cause.kind) else ""
    return f"{package}{cause.kind}: [{cause.condition}] {said}"
