"""A file is taken in once, whatever happens to it, unless the read says otherwise; limits and filters hold."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from headwater.commands.command_line import main
from headwater.metrics.file_history import ingested_files
from headwater.metrics.lag import flow_lag
from headwater.updates.news import has_news


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


def test_an_overwritten_file_is_not_read_again(pipeline):
    """A file that is written again stays read, as Auto Loader has it by default."""
    case = pipeline(source())
    case.land([{"id": 1}])
    case.update()
    overwrite(case, 1, [{"id": 9}])
    assert case.update().state == "COMPLETED"
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


def test_existing_files_can_be_left_out(pipeline):
    """With includeExistingFiles off only files that come after the first start are read, whatever their age."""
    case = pipeline(source("includeExistingFiles=false"))
    case.land([{"id": 1}])
    case.land([{"id": 2}])
    assert case.update().state == "COMPLETED"
    assert case.rows("bronze") == []
    case.land([{"id": 3}])
    os.utime(case.landing / "00003.json", (1_700_000_000, 1_700_000_000))
    assert case.update().state == "COMPLETED"
    assert case.update().state == "COMPLETED"
    assert case.rows("bronze") == [(3,)]
    states = [f.state for f in ingested_files(case.project().state_folder, "bronze", "bronze")]
    assert sorted(states) == ["ingested", "skipped", "skipped"]


def test_limits_and_filters(pipeline):
    """maxFilesPerTrigger makes batches; pathGlobFilter and modifiedBefore choose files; lag counts by them too."""
    limits = ("maxFilesPerTrigger=1", "!pathGlobFilter=*.json", "!modifiedBefore=2100-01-01T00:00:00")
    case = pipeline(source(*limits))
    for number in (1, 2, 3):
        case.land([{"id": number}])
    (case.landing / "notes.txt").write_text("no JSON")
    late = case.landing / "00003.json"
    os.utime(late, (4_200_000_000, 4_200_000_000))
    assert case.update()["bronze"].batches == 3
    assert case.rows("bronze") == [(1,), (2,)]
    assert flow_lag(case.project(), case.manifest().flows[0]).backlog.files == 0


def test_max_bytes_per_trigger(pipeline):
    """maxBytesPerTrigger, with a unit as Auto Loader takes it, makes batches too."""
    case = pipeline(source("maxBytesPerTrigger=10b"))
    for number in (1, 2, 3):
        case.land([{"id": number}])
    assert case.update()["bronze"].batches == 3


def test_partition_columns_and_metadata(pipeline):
    """Folders named key=value become columns, below plain folders and with escaped values; _metadata can be selected."""
    text = source(schema="").replace(
        ".load(LANDING))",
        '.load(LANDING).select("*", "_metadata.file_name", F.input_file_name().alias("file")))',
    )
    case = pipeline(text)
    case.land([{"id": 1}], folder="eu/day=2026-01-31/shop=a%20b+c")
    case.update()
    columns = "id, day, shop, file_name"
    assert case.rows("bronze", columns) == [("1", "2026-01-31", "a b+c", "00001.json")]
    assert case.rows("bronze", "file", "1")[0][0].endswith("00001.json")


def test_clean_source_moves_what_was_taken_in(pipeline, tmp_path):
    """Files that were committed long enough ago are moved away, with the folders below the source kept."""
    archive = tmp_path / "archive"
    move = (
        "cleanSource=MOVE",
        f"cleanSource.moveDestination={archive}",
        "cleanSource.retentionDuration=0 seconds",
    )
    case = pipeline(source(*move))
    case.land([{"id": 1}], folder="a/b")
    case.update()
    assert (archive / "a/b/00001.json").is_file()
    assert not list(case.landing.rglob("*.json"))
    case.land([{"id": 2}])
    case.update()
    assert case.rows("bronze") == [(1,), (2,)]


def test_old_files_are_deleted_and_no_others(pipeline):
    """With cleanSource DELETE a file goes once its commit is as old as it says; a newer one, or one written again, stays."""
    case = pipeline(source("cleanSource=DELETE", "cleanSource.retentionDuration=8 days"))
    for number in (1, 2):
        case.land([{"id": number}])
        case.update()
    assert len(list(case.landing.glob("*.json"))) == 2
    commits = sorted((case.checkpoint("bronze").epoch_folder(0) / "commits").glob("[0-9]*"))
    age(commits[0], days=9)
    age(commits[1], days=7)
    case.land([{"id": 3}])
    case.update()
    assert sorted(path.name for path in case.landing.glob("*.json")) == ["00002.json", "00003.json"]
    age(commits[1], days=9)
    overwrite(case, 2, [{"id": 2}])
    case.land([{"id": 4}])
    case.update()
    assert sorted(path.name for path in case.landing.glob("*.json")) == [
        "00002.json",
        "00003.json",
        "00004.json",
    ]
    assert case.rows("bronze") == [(1,), (2,), (3,), (4,)]


def test_nothing_is_cleaned_behind_a_failure(pipeline):
    """A file whose batch was not committed stays, however the update ended."""
    text = source(
        "cleanSource=MOVE", "cleanSource.moveDestination=ARCHIVE", "cleanSource.retentionDuration=0 seconds"
    )
    rule = '@dp.table\n@dp.expect_or_fail("small", "id < 10")'
    case = pipeline("")
    archive = case.root / "archive"
    case.rewrite(text.replace("ARCHIVE", str(archive)).replace("@dp.table", rule))
    case.land([{"id": 10}])
    assert case.update().state == "FAILED"
    assert [path.name for path in case.landing.glob("*.json")] == ["00001.json"]
    assert not archive.exists()


def age(file: Path, *, days: int) -> None:
    """Let a file be so old."""
    then = time.time() - days * 86_400
    os.utime(file, (then, then))


def test_an_empty_folder_gives_an_empty_table(pipeline):
    """Nothing there yet: the table is empty, and takes its columns from the first files."""
    case = pipeline(source(schema=""))
    assert case.update().state == "COMPLETED"
    case.land([{"id": 1}])
    assert case.update().state == "COMPLETED"
    assert case.rows("bronze", "id", "1") == [("1",)]


def test_validate_writes_nothing(pipeline):
    """Resolving infers the schema and keeps it in memory only."""
    case = pipeline(source(schema=""))
    case.land([{"id": 1}])
    assert [c.name for c in case.manifest().dataset("bronze").columns] == ["id", "_rescued_data"]
    assert case.nothing_written()
