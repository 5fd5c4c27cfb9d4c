"""Every option of a Delta source reaches Delta, and does there what its documentation says."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession
from tests.pipeline_case import PipelineCase, UpdateReport

from headwater.errors import (
    HeadwaterError,
    InvalidSourceOption,
    QueryFailed,
    SourceSchemaChanged,
    UnsupportedArgument,
)
from headwater_spark.testing.local_session import forget_tables

DAY = datetime(2023, 4, 18, tzinfo=UTC)
# Batches of a change feed reach back a week at most.
RECENT = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=5)


def source(case: PipelineCase) -> Path:
    """Where the table that the case reads lies."""
    return case.landing / "events"


def append(case: PipelineCase, *ids: int, table: str = "events", **more: object) -> None:
    """Append a file of rows; `day` is the partition."""
    rows = {"id": list(ids), "day": [f"d{number % 2}" for number in ids]}
    rows |= {name: [value] * len(ids) for name, value in more.items()}
    merge = {"schema_mode": "merge"} if more else {}
    write_deltalake(str(case.landing / table), pa.table(rows), mode="append", partition_by=["day"], **merge)


def reading(*options: str, then: str = "", name: str = "copy", table: str = "events") -> str:
    """A streaming table over the source, read with options."""
    chain = "".join(f".option({option})" for option in options)
    read = f'spark.readStream.format("delta"){chain}.load(LANDING + "/{table}"){then}'
    return f"@dp.table\ndef {name}():\n    return {read}\n"


def ids(case: PipelineCase, name: str = "copy") -> list[int]:
    """The ids in the copy."""
    return [row[0] for row in case.rows(name, "id", "1")]


# An option, and how many batches three files are with it: where two limits are given, the one that is reached first ends a batch.
LIMITS = {
    "two_files": ('"maxFilesPerTrigger", 2', 2),
    "a_byte": ('"maxBytesPerTrigger", "1"', 3),
    "many_files": ('"maxFilesPerTrigger", 1000', 1),
    "by_bytes": ('"maxFilesPerTrigger", 2).option("maxBytesPerTrigger", "1"', 3),
    "by_files": ('"maxFilesPerTrigger", 2).option("maxBytesPerTrigger", "1g"', 2),
}
# Options of a stream over a table from which a partition, or a row inside a file, was deleted; what the copy has (None: it fails).
DELETED: dict[str, tuple[tuple[str, ...], list[int] | None]] = {
    "nothing_said": ((), None),
    "ignore_deletes": (('"ignoreDeletes", "true"',), [0, 1, 2]),
    "skip_commits": (('"skipChangeCommits", "true"',), [0, 1, 2]),
}
REWRITTEN: dict[str, tuple[tuple[str, ...], list[int] | None]] = {
    "ignore_deletes_is_not_enough": (('"ignoreDeletes", "true"',), None),
    "ignore_changes_gives_rows_again": (('"ignoreChanges", "true"',), [0, 0, 2, 4]),
    "skip_commits_does_not": (('"skipChangeCommits", "true"',), [0, 2, 4]),
}
TIMED = (
    '.withColumn("at", F.timestamp_seconds(F.col("id") * 3600)).withWatermark("at", "10 seconds")'
    '.dropDuplicates(["id", "at"])'
)
COPIES = "".join(
    [
        *(reading(option, name=name, table="limits") for name, (option, _) in LIMITS.items()),
        *(reading(*options, name=name, table="deleted") for name, (options, _) in DELETED.items()),
        *(reading(*options, name=name, table="rewritten") for name, (options, _) in REWRITTEN.items()),
        reading('"startingVersion", "2"', name="from_two", table="versions"),
        reading('"withEventTimeOrder", "true"', then=TIMED, name="ordered", table="timed"),
        reading('"schemaTrackingLocation", LANDING + "/../tracked"', name="tracking", table="tracked"),
        reading(name="stops", table="widened"),
        reading(name="refreshed", table="widened"),
        reading(then='.select("id")', name="chosen", table="widened"),
        # Files of the other partition count, and are not read.
        reading(name="of_a_thousand", then=""".where("day = 'd0'")""", table="thousand"),
        reading('"failOnDataLoss", "false"', name="of_a_cut_log", table="cut"),
    ]
)
LATER = COPIES.replace('"startingVersion", "2"', '"startingVersion", "0"') + reading(
    '"startingTimestamp", "2023-04-19"', name="late", table="versions"
)


@dataclass(frozen=True)
class Copied:
    """The pipeline after two updates: before and after things have happened to what it reads."""

    case: PipelineCase
    first: UpdateReport
    first_ids: dict[str, list[int]]
    second: UpdateReport


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Copied]:
    """A copy of a table for each option, filled by one update, and by another one after the tables have changed."""
    case = PipelineCase(tmp_path_factory.mktemp("copied"), COPIES)
    for number in range(3):
        append(case, number, table="limits")
    for number in range(4):
        append(case, number, table="versions")
        log = case.landing / "versions" / "_delta_log" / f"{number:020d}.json"
        os.utime(log, ((DAY.timestamp() + 86400 * number,) * 2))
    append(case, 0, 1, table="deleted")
    append(case, 0, 2, table="rewritten")
    for number in (9, 1, 5, 3):
        append(case, number, table="timed")
    for name in ("tracked", "widened", "cut"):
        append(case, 1, table=name)
    add_a_thousand_files(case.landing / "thousand")
    first = case.update()
    assert first.state == "COMPLETED", first.error
    first_ids = {name: ids(case, name) for name in first.statuses}

    append(case, 4, table="versions")
    DeltaTable(str(case.landing / "deleted")).delete("day = 'd0'")
    append(case, 2, table="deleted")
    DeltaTable(str(case.landing / "rewritten")).delete("id = 2")
    append(case, 4, table="rewritten")
    append(case, 2, table="widened", size=5)
    for number in (2, 3):
        append(case, number, table="cut")
    DeltaTable(str(case.landing / "cut")).create_checkpoint()
    for version in range(2):
        (case.landing / "cut" / "_delta_log" / f"{version:020d}.json").unlink()
    case.rewrite(LATER)
    changed = ("from_two", "late", *DELETED, *REWRITTEN, "stops", "refreshed", "chosen", "of_a_cut_log")
    yield Copied(case, first, first_ids, case.update(tables=changed))
    forget_tables(spark)


def add_a_thousand_files(table: Path) -> None:
    """A table of one row, and then of a thousand more files in another partition: links, so that it takes no time."""
    write_deltalake(str(table), pa.table({"id": [0], "day": ["d0"]}), partition_by=["day"])
    log = table / "_delta_log" / f"{0:020d}.json"
    lines = [json.loads(line) for line in log.read_text().split("\n") if line]
    add = next(line["add"] for line in lines if "add" in line)
    original = table / add["path"]
    copies = []
    for number in range(1000):
        copy = original.with_name(f"copy-{number}.parquet")
        os.link(original, copy)
        of_day = {**add, "path": str(copy.relative_to(table)), "partitionValues": {"day": "d1"}}
        copies.append(json.dumps({"add": of_day}))
    (log.with_name(f"{1:020d}.json")).write_text("\n".join(copies) + "\n")


def test_limits(copied: Copied):
    """n files at k a batch are ceil(n / k) batches, in one update; a limit in bytes lets one file through at least; of two limits
    the lower one holds.
    """
    batches = {name: copied.first[name].batches for name in LIMITS}
    assert batches == {name: number for name, (_, number) in LIMITS.items()}
    assert all(copied.first_ids[name] == [0, 1, 2] for name in LIMITS), copied.first_ids


def test_the_limit_that_nobody_sets(copied: Copied):
    """Without a limit a batch takes a thousand files, as Delta's documentation says."""
    assert copied.first["of_a_thousand"].batches == 2
    assert copied.first_ids["of_a_thousand"] == [0]


def test_starting_points(copied: Copied):
    """A version or a time says where the first run begins; afterwards the checkpoint does."""
    assert copied.first_ids["from_two"] == [2, 3]
    assert ids(copied.case, "from_two") == [2, 3, 4]
    assert ids(copied.case, "late") == [1, 2, 3, 4]


def test_rows_are_deleted(copied: Copied):
    """Rows deleted by partition stop a stream, unless it was told to pass over them. A row deleted inside a file rewrites the
    file: its other rows come again, or the commit is passed over.
    """
    report = copied.second
    ends = {
        name: None if report[name].status == "FAILED" else ids(copied.case, name)
        for name in (*DELETED, *REWRITTEN)
    }
    assert ends == {name: expected for name, (_, expected) in {**DELETED, **REWRITTEN}.items()}
    assert "skipChangeCommits" in str(report["nothing_said"].error)


def test_event_time_order(copied: Copied):
    """With withEventTimeOrder the watermark drops no row of a first load whose files are out of order."""
    assert copied.first_ids["ordered"] == [1, 3, 5, 9]


def test_schema_tracking(copied: Copied):
    """schemaTrackingLocation is taken although the checkpoint is managed elsewhere."""
    assert copied.first_ids["tracking"] == [1]
    assert any((copied.case.root / "tracked").rglob("*"))


def test_a_log_that_was_cut(copied: Copied):
    """`failOnDataLoss` is Kafka's: for Delta it changes nothing, and commits that are gone unread are refused by name."""
    error = copied.second["of_a_cut_log"].error
    assert isinstance(error, HeadwaterError)
    assert error.condition == "SOURCE_LOG_CUT"
    assert "failOnDataLoss does not help" in error.remedy
    assert ids(copied.case, "of_a_cut_log") == [1]


def test_columns_are_added_at_the_source(copied: Copied):
    """By default a new column stops the flow before it reads anything; mergeSchema on the read takes it, and so does a full
    refresh, the way out that the message names. A query that names its columns goes on.
    """
    case, report = copied.case, copied.second
    assert (report["chosen"].status, ids(case, "chosen")) == ("COMPLETED", [1, 2])
    for name in ("stops", "refreshed"):
        error = report[name].error
        assert isinstance(error, SourceSchemaChanged)
        assert "added size" in error.what
        assert ids(case, name) == [1]
    merging = reading('"mergeSchema", "true"', name="stops", table="widened")
    case.rewrite(LATER.replace(reading(name="stops", table="widened"), merging))
    assert case.update(tables=("stops",)).state == "COMPLETED"
    assert case.rows("stops", "id, size") == [(1, None), (2, 5)]
    assert case.update(full_refresh=("refreshed",))["refreshed"].status == "COMPLETED"
    assert case.rows("refreshed", "id, size") == [(1, None), (2, 5)]
    append(case, 3, table="widened", size=6, color="red")
    assert case.update(tables=("stops",)).state == "COMPLETED"
    assert case.columns("stops") == ["id", "day", "size", "color"]


def test_an_option_that_is_misspelled(pipeline):
    """Spark would pass over it and read other rows: refused with its line, in streams and batches, by folder and by name."""
    reads = (
        'readStream.option("skipChangeComits", True).format("delta").load(LANDING + "/events")',
        'readStream.option("maxFilesPerTriger", 1).table("events")',
        'read.option("versionAsOff", 1).format("delta").load(LANDING + "/events")',
        'read.option("versionAsOff", 1).table("events")',
    )
    case = pipeline()
    append(case, 1)
    for read in reads:
        case.rewrite(
            f"@dp.table\ndef events():\n    return spark.readStream.format('delta').load(LANDING + '/events')\n\n"
            f"@dp.table\ndef copy():\n    return spark.{read}\n"
        )
        with pytest.raises(InvalidSourceOption, match="There is no option") as refused:
            case.update()
        assert "Did you mean" in refused.value.remedy
        assert refused.value.where == case.line_of(read)
    assert case.nothing_written()


def test_a_limit_that_is_none(pipeline):
    """Delta would refuse it when the flow starts: a stream with such a limit is refused before, by folder and by name."""
    case = pipeline()
    for read in (
        'readStream.option("maxFilesPerTrigger", 0).format("delta").load(LANDING + "/events")',
        'readStream.option("maxBytesPerTrigger", "0g").table("events")',
    ):
        case.rewrite(
            f"@dp.table\ndef events():\n    return spark.readStream.format('delta').load(LANDING + '/events')\n\n"
            f"@dp.table\ndef copy():\n    return spark.{read}\n"
        )
        append(case, 1)
        with pytest.raises(InvalidSourceOption, match="the limit of a batch is a number above 0") as refused:
            case.manifest()
        assert refused.value.where == case.line_of(read)


def test_event_time_order_in_batches(pipeline):
    """File by file a watermark would drop rows, and open Delta can't sort the files: the limit is refused."""
    case = pipeline(reading('"withEventTimeOrder", "true"', '"maxFilesPerTrigger", 1', then=TIMED))
    append(case, 1)
    with pytest.raises(UnsupportedArgument, match="exclude each other"):
        case.manifest()


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[PipelineCase]:
    """A table with one change of each type: an insert (version 0), an update (1), a delete (2), an append (3)."""
    case = PipelineCase(tmp_path_factory.mktemp("changed"))
    path = source(case)
    writer = (
        spark.createDataFrame([(1, "a"), (2, "b")], "id INT, name STRING").coalesce(1).write.format("delta")
    )
    writer.option("delta.enableChangeDataFeed", "true").save(str(path))
    spark.sql(f"UPDATE delta.`{path}` SET name = 'A' WHERE id = 1")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 2")
    spark.createDataFrame([(3, "c")], "id INT, name STRING").write.format("delta").mode("append").save(
        str(path)
    )
    for version in range(4):
        log = path / "_delta_log" / f"{version:020d}.json"
        os.utime(log, ((RECENT.timestamp() + 86400 * version,) * 2))
    yield case
    forget_tables(spark)


FEED = """
@dp.table
def stream():
    return spark.readStream.format("delta").option("readChangeFeed", "true").option("startingVersion", 0).load(LANDING + "/events")

@dp.materialized_view
def by_version():
    return (spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 1)
            .option("endingVersion", 2).load(LANDING + "/events"))

@dp.materialized_view
def beyond():
    return (spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 3)
            .option("endingVersion", 9).load(LANDING + "/events"))

@dp.materialized_view
def by_time():
    return (spark.read.option("readChangeFeed", "true").option("startingTimestamp", "{start}")
            .option("endingTimestamp", "{end}").format("delta").load(LANDING + "/events"))
"""


def test_the_change_feed(changed: PipelineCase):
    """As a stream and as a batch between versions or times, both ends included; rows of all four kinds. One by versions that ends
    after the last commit ends with it.
    """
    start, end = RECENT + timedelta(hours=12), RECENT + timedelta(days=2)
    changed.rewrite(FEED.format(start=f"{start:%F %T}", end=f"{end:%F %T}"))
    assert changed.update().state == "COMPLETED"
    assert changed.columns("stream") == ["id", "name", "_change_type", "_commit_version", "_commit_timestamp"]
    kinds = "id, name, _change_type, _commit_version"
    update = [(1, "A", "update_postimage", 1), (1, "a", "update_preimage", 1)]
    delete = [(2, "b", "delete", 2)]
    ends = [(1, "a", "insert", 0), (2, "b", "insert", 0), (3, "c", "insert", 3)]
    assert changed.rows("stream", kinds, "1, 2, 4") == sorted(
        ends + update + delete, key=lambda r: (r[0], r[1], r[3])
    )
    assert changed.rows("by_version", kinds) == update + delete
    assert changed.rows("by_time", kinds) == update + delete
    assert changed.rows("beyond", "id, _change_type") == [(3, "insert")]
    schema = {f.name: str(f.type) for f in DeltaTable(str(changed.table("stream"))).schema().fields}
    assert "long" in schema["_commit_version"]
    assert "timestamp" in schema["_commit_timestamp"]


def test_a_change_feed_that_was_not_on(pipeline):
    """What was written before the feed was turned on can't be read from it: refused with what to do."""
    case = pipeline(reading('"readChangeFeed", "true"', '"startingVersion", 0'))
    append(case, 1)
    try:
        error: HeadwaterError | Exception | None = case.update().error
    except QueryFailed as refused:
        error = refused
    assert "delta.enableChangeDataFeed" in str(error)
    assert "startingVersion" in str(error)


@pytest.mark.parametrize(
    ("options", "condition"),
    [
        ('.option("startingVersion", 9)', "DELTA_CDC_START_VERSION_AFTER_LATEST"),
        (
            '.option("startingTimestamp", "{begin:%F %T}").option("endingTimestamp", "{late:%F %T}")',
            "DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
        ),
        ('.option("startingTimestamp", "{late:%F %T}")', "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"),
    ],
)
def test_a_range_beyond_the_last_commit(changed: PipelineCase, options: str, condition: str):
    """A feed that starts after the last commit, or by time ends after it, is an error that says so, not an empty answer."""
    times = options.format(begin=RECENT + timedelta(days=2, hours=12), late=RECENT + timedelta(days=4))
    changed.rewrite(
        "@dp.materialized_view\ndef feed():\n"
        f'    return spark.read.format("delta").option("readChangeFeed", "true"){times}.load(LANDING + "/events")\n'
    )
    try:
        error: HeadwaterError | Exception | None = changed.update().error
    except HeadwaterError as refused:
        error = refused
    assert condition in str(error)
    assert "Give a time or version up to its last commit" in str(error)
