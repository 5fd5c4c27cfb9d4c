"""A file is taken in once, whatever happens to it, unless the read says otherwise; limits and filters hold."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.in_step import Share, Steps, in_step

from headwater.commands.command_line import main
from headwater.errors import InvalidSourceOption
from headwater.metrics.file_history import ingested_files
from headwater.metrics.lag import flow_lag
from headwater.updates.news import has_news
from headwater_spark.testing.local_session import forget_tables


def source(*options: str, schema: str = "id INT", source_format: str = "json") -> str:
    chain = "".join(
        f".option({('' if key.startswith('!') else 'cloudFiles.') + key.lstrip('!')!r}, {value!r})"
        for key, _, value in (option.partition("=") for option in options)
    )
    schema_call = f".schema({schema!r})" if schema else ""
    return f"""
@dp.table
def bronze():
    return (spark.readStream.format("cloudFiles").option("cloudFiles.format", {source_format!r}){chain}{schema_call}
            .load(LANDING))
"""


def overwrite(case, number: int, rows: list[dict]) -> None:
    """Write a landed file again, later than before."""
    path = case.landing / f"{number:05d}.json"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    later = time.time() + 5
    os.utime(path, (later, later))


def test_the_second_run_takes_only_new_files(pipeline, capsys):
    """Nested folders are read; later updates take what is new; lag, news and the list of files need no JVM."""
    case = pipeline(source(schema=""))
    case.land([{"id": 1}], folder="2026/01")
    assert case.update()["bronze"].output_rows == 1
    entry = case.manifest().flows[0]
    assert entry.sources[0].format == "json"
    assert not has_news(case.project()).moved
    case.land([{"id": 2}, {"id": 3}], folder="2026/02/03")
    assert flow_lag(case.project(), entry).backlog.files == 1
    assert case.update()["bronze"].output_rows == 2
    assert case.update()["bronze"].output_rows == 0
    assert flow_lag(case.project(), entry).backlog.files == 0
    assert case.rows("bronze", "id", "1") == [("1",), ("2",), ("3",)]
    files = ingested_files(case.project().state_folder, "bronze", "bronze")
    assert [(f.path, f.state, f.batch) for f in files] == [
        (str(case.landing / "2026/01/00001.json"), "ingested", 0),
        (str(case.landing / "2026/02/03/00002.json"), "ingested", 1),
    ]
    assert files[0].ingested_at <= files[1].ingested_at
    roots = ["--storage", str(case.storage), "--warehouse", str(case.warehouse)]
    capsys.readouterr()
    assert main(["files", str(case.folder), *roots, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out.splitlines()[-1])["files"]
    assert [(file["batch"], file["state"]) for file in shown] == [(0, "ingested"), (1, "ingested")]
    assert main(["files", str(case.folder), *roots, "--flow", "bronze"]) == 0
    assert main(["files", str(case.folder), *roots, "--flow", "nobody"]) == 2


def an_overwritten_file_is_not_read_again(case: Share) -> Steps:
    """A file that is written again stays read, as Auto Loader has it by default."""
    case.rewrite(source())
    case.land([{"id": 1}])
    yield
    overwrite(case, 1, [{"id": 9}])
    assert (yield).state == "COMPLETED"
    assert case.rows("bronze") == [(1,)]


def test_allow_overwrites_reads_it_again(pipeline):
    """With allowOverwrites it is read again, once for each time it is written."""
    case = pipeline(source("allowOverwrites=true"))
    case.land([{"id": 1}])
    case.land([{"id": 2}])
    case.update()
    overwrite(case, 1, [{"id": 9}])
    assert has_news(case.project()).moved
    for _ in range(2):
        assert case.update().state == "COMPLETED"
        assert case.rows("bronze") == [(1,), (2,), (9,)]
    states = [f.state for f in ingested_files(case.project().state_folder, "bronze", "bronze")]
    assert sorted(states) == ["ingested", "ingested", "superseded"]


def existing_files_can_be_left_out(case: Share) -> Steps:
    """With includeExistingFiles off only files that come after the first start are read, whatever their age."""
    case.rewrite(source("includeExistingFiles=false"))
    case.land([{"id": 1}])
    case.land([{"id": 2}])
    assert (yield).state == "COMPLETED"
    assert case.rows("bronze") == []
    case.land([{"id": 3}])
    os.utime(case.landing / "00003.json", (1_700_000_000, 1_700_000_000))
    assert (yield).state == "COMPLETED"
    assert (yield).state == "COMPLETED"
    assert case.rows("bronze") == [(3,)]
    states = [
        f.state for f in ingested_files(case.project().state_folder, case.own("bronze"), case.own("bronze"))
    ]
    assert sorted(states) == ["ingested", "skipped", "skipped"]


def limits_and_filters(case: Share) -> Steps:
    """maxFilesPerTrigger makes batches; pathGlobFilter and modifiedBefore choose files; lag counts by them too."""
    limits = ("maxFilesPerTrigger=1", "!pathGlobFilter=*.json", "!modifiedBefore=2100-01-01T00:00:00")
    case.rewrite(source(*limits))
    for number in (1, 2, 3):
        case.land([{"id": number}])
    (case.landing / "notes.txt").write_text("no JSON")
    late = case.landing / "00003.json"
    os.utime(late, (4_200_000_000, 4_200_000_000))
    assert (yield)["bronze"].batches == 3
    assert case.rows("bronze") == [(1,), (2,)]
    entry = next(flow for flow in case.manifest().flows if flow.name == case.own("bronze"))
    assert flow_lag(case.project(), entry).backlog.files == 0


def max_bytes_per_trigger(case: Share) -> Steps:
    """maxBytesPerTrigger, with a unit as Auto Loader takes it, makes batches too."""
    case.rewrite(source("maxBytesPerTrigger=10b"))
    for number in (1, 2, 3):
        case.land([{"id": number}])
    assert (yield)["bronze"].batches == 3


def partition_columns_and_metadata(case: Share) -> Steps:
    """Folders named key=value become columns, below plain folders and with escaped values; _metadata can be selected."""
    text = source(schema="").replace(
        ".load(LANDING))",
        '.load(LANDING).select("*", "_metadata.file_name", F.input_file_name().alias("file")))',
    )
    case.rewrite(text)
    case.land([{"id": 1}], folder="eu/day=2026-01-31/shop=a%20b+c")
    yield
    columns = "id, day, shop, file_name"
    assert case.rows("bronze", columns) == [("1", "2026-01-31", "a b+c", "00001.json")]
    assert case.rows("bronze", "file", "1")[0][0].endswith("00001.json")


def clean_source_moves_what_was_taken_in(case: Share) -> Steps:
    """Files that were committed long enough ago are moved away, with the folders below the source kept."""
    archive = case.root / "archive"
    move = (
        "cleanSource=MOVE",
        f"cleanSource.moveDestination={archive}",
        "cleanSource.retentionDuration=0 seconds",
    )
    case.rewrite(source(*move))
    case.land([{"id": 1}], folder="a/b")
    yield
    assert (archive / "a/b/00001.json").is_file()
    assert not list(case.landing.rglob("*.json"))
    case.land([{"id": 2}])
    yield
    assert case.rows("bronze") == [(1,), (2,)]


def old_files_are_deleted_and_no_others(case: Share) -> Steps:
    """With cleanSource DELETE a file goes once its commit is as old as it says; a newer one, or one written again, stays."""
    case.rewrite(source("cleanSource=DELETE", "cleanSource.retentionDuration=8 days"))
    for number in (1, 2):
        case.land([{"id": number}])
        yield
    assert len(list(case.landing.glob("*.json"))) == 2
    commits = sorted((case.checkpoint("bronze").epoch_folder(0) / "commits").glob("[0-9]*"))
    age(commits[0], days=9)
    age(commits[1], days=7)
    case.land([{"id": 3}])
    yield
    assert sorted(path.name for path in case.landing.glob("*.json")) == ["00002.json", "00003.json"]
    age(commits[1], days=9)
    overwrite(case, 2, [{"id": 2}])
    case.land([{"id": 4}])
    yield
    assert sorted(path.name for path in case.landing.glob("*.json")) == [
        "00002.json",
        "00003.json",
        "00004.json",
    ]
    assert case.rows("bronze") == [(1,), (2,), (3,), (4,)]


def nothing_is_cleaned_behind_a_failure(case: Share) -> Steps:
    """A file whose batch was not committed stays, however the update ended."""
    text = source(
        "cleanSource=MOVE", "cleanSource.moveDestination=ARCHIVE", "cleanSource.retentionDuration=0 seconds"
    )
    rule = '@dp.table\n@dp.expect_or_fail("small", "id < 10")'
    case.rewrite("")
    archive = case.root / "archive"
    case.rewrite(text.replace("ARCHIVE", str(archive)).replace("@dp.table", rule))
    case.land([{"id": 10}])
    assert (yield).state == "FAILED"
    assert [path.name for path in case.landing.glob("*.json")] == ["00001.json"]
    assert not archive.exists()


def age(file: Path, *, days: int) -> None:
    """Let a file be so old."""
    then = time.time() - days * 86_400
    os.utime(file, (then, then))


def an_empty_folder_gives_an_empty_table(case: Share) -> Steps:
    """Nothing there yet: the table is empty, and takes its columns from the first files."""
    case.rewrite(source(schema=""))
    assert (yield).state == "COMPLETED"
    case.land([{"id": 1}])
    assert (yield).state == "COMPLETED"
    assert case.rows("bronze", "id", "1") == [("1",)]


SCENARIOS = (
    an_overwritten_file_is_not_read_again,
    existing_files_can_be_left_out,
    limits_and_filters,
    max_bytes_per_trigger,
    partition_columns_and_metadata,
    clean_source_moves_what_was_taken_in,
    old_files_are_deleted_and_no_others,
    nothing_is_cleaned_behind_a_failure,
    an_empty_folder_gives_an_empty_table,
)


def test_each_file_once(tmp_path: Path, spark: SparkSession):
    """Each scenario holds what its docstring says."""
    in_step(tmp_path, ("bronze",), SCENARIOS)
    forget_tables(spark)


def test_validate_writes_nothing(pipeline):
    """Resolving infers the schema and keeps it in memory only."""
    case = pipeline(source(schema=""))
    case.land([{"id": 1}])
    assert [c.name for c in case.manifest().dataset("bronze").columns] == ["id", "_rescued_data"]
    assert case.nothing_written()


def test_listings_and_times_of_change(pipeline):
    """A file counts by the moment at which it was changed, in the read's zone; the event log has how many were listed, and one backfill a day."""
    case = pipeline(
        source("backfillInterval=1 day", "!modifiedAfter=2026-01-01 13:00:00", "!timeZone=Europe/Berlin")
    )
    noon = 1_767_268_800  # 2026-01-01 12:00 UTC, which is 13:00 in Berlin
    for number, changed in ((1, noon - 3600), (2, noon), (3, noon + 1)):
        case.land([{"id": number}])
        os.utime(case.landing / f"{number:05d}.json", (changed, changed))
    assert case.update().state == "COMPLETED"
    assert case.rows("bronze") == [(3,)]
    entry = case.manifest().flows[0]
    assert entry.sources[0].options["modifiedAfter"] == "2026-01-01T12:00:00+00:00"
    assert flow_lag(case.project(), entry).backlog.files == 0
    case.land([{"id": 4}])
    assert case.update()["bronze"].output_rows == 1
    bodies = [
        record["details"]["operation_progress"]
        for record in case.events(event_type="operation_progress", containing="AUTO_LOADER")
    ]
    assert [(body["type"], body["auto_loader_details"]["num_files_listed"]) for body in bodies] == [
        ("AUTO_LOADER_BACKFILL", 1), ("AUTO_LOADER_LISTING", 2),
    ]  # fmt: skip
    assert {body["auto_loader_details"]["source_path"] for body in bodies} == {str(case.landing)}


def test_times_of_change_of_a_batch(pipeline):
    """Spark's own reader takes the files that cloudFiles would, in zones on both sides of UTC; its streams are refused by validate."""
    read = """
@dp.materialized_view
def {name}():
    files = spark.read.schema("id INT").option("modifiedAfter", "{text}").option("timeZone", "{zone}")
    return files.json(LANDING)
"""
    views = {
        "east": ("2026-01-01 13:00:00", "Europe/Berlin"),
        "west": ("2026-01-01 07:00:00", "America/New_York"),
        "named": ("2026-01-01T12:00:00Z", "America/New_York"),
    }
    case = pipeline(
        "".join(read.format(name=name, text=text, zone=zone) for name, (text, zone) in views.items())
    )
    for number in range(-6, 7):
        case.land([{"id": number}])
        changed = 1_767_268_800 + number * 3600  # from 2026-01-01 12:00 UTC
        os.utime(case.landing / f"{number + 7:05d}.json", (changed, changed))
    assert case.update().state == "COMPLETED"
    for name in views:
        assert case.rows(name) == [(hour,) for hour in range(1, 7)], name
    stream = "@dp.table\ndef t():\n    return spark.readStream.schema('id INT').option('modifiedAfter', '2026-01-01').json(LANDING)\n"
    case.rewrite(stream)
    with pytest.raises(InvalidSourceOption, match="modifiedAfter"):
        case.manifest()
