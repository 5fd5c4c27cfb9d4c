"""A landing folder that was moved, or has another name, is named before a row of it is read twice."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from headwater.checkpoints.conditions import SourceMoved
from headwater.commands.command_line import main

TABLES = """
@dp.table
def plain():
    return spark.readStream.schema("id INT").json(PLACE)

@dp.table
def loaded():
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id INT")
    return reader.load(PLACE)
"""


def reading(case, place: object, loaded: object = None) -> None:
    """Let both sources read a place, or each its own."""
    case.rewrite(
        TABLES.replace("json(PLACE)", f"json({str(place)!r})").replace("PLACE", repr(str(loaded or place)))
    )


def both(case) -> list[int]:
    """The rows of both tables, which are the same."""
    plain, loaded = case.rows("plain"), case.rows("loaded")
    assert plain == loaded
    return [row[0] for row in plain]


def refused(case) -> str:
    """The message of an update in which both flows are refused."""
    report = case.update()
    errors = [report[flow].error for flow in ("plain", "loaded")]
    assert all(isinstance(error, SourceMoved) for error in errors), errors
    return str(errors[0])


def test_a_folder_that_lies_elsewhere(pipeline, capsys):
    """Spellings go on; moved and linked folders are refused, also with a batch in flight; a link or a new epoch is the way on."""
    case = pipeline(TABLES.replace("PLACE", "LANDING"))
    case.land([{"id": 1}])
    assert case.update().state == "COMPLETED"
    number = 1
    landing = case.landing
    relative = os.path.relpath(landing)
    spelled = f"file://{landing}/../landing/"
    for places in ((spelled, relative), (relative, spelled)):
        number += 1
        reading(case, *places)
        case.land([{"id": number}])
        assert case.update().state == "COMPLETED", places
        assert both(case) == list(range(1, number + 1)), places
    # Reached by a link, and moved for good.
    link, moved = landing.with_name("link"), landing.with_name("moved")
    link.symlink_to(landing)
    reading(case, link)
    assert f"below {landing}" in refused(case)
    link.unlink()
    landing.rename(moved)
    reading(case, moved)
    assert str(moved) in refused(case)
    # A batch in flight: planned, and its mark is not there.
    for flow in ("plain", "loaded"):
        commits = case.checkpoint(flow).live_folder() / "commits"
        newest = max(
            (file for file in commits.iterdir() if file.name.isdigit()), key=lambda file: int(file.name)
        )
        newest.unlink()
    assert "planned and not done" in refused(case)
    assert both(case) == list(range(1, number + 1))
    # The doctor says the same.
    roots = [f"--storage={case.storage}", f"--warehouse={case.warehouse}"]
    capsys.readouterr()
    assert main(["checkpoints", "diagnose", str(case.folder), "plain", *roots]) != 0
    assert "SOURCE_MOVED" in capsys.readouterr().out
    # One way on: a link with the old name.
    landing.symlink_to(moved)
    reading(case, landing)
    number += 1
    case.land([{"id": number}])
    assert case.update().state == "COMPLETED"
    assert both(case) == list(range(1, number + 1))
    # The other: what is there now counts as read, under its new paths.
    landing.unlink()
    case.landing = moved
    reading(case, moved)
    refused(case)
    now = datetime.now(UTC).isoformat()
    for flow in ("plain", "loaded"):
        arguments = [
            "repair",
            str(case.folder),
            flow,
            "--action",
            "new-epoch",
            "--from-time",
            now,
            "--yes",
            *roots,
        ]
        assert main(arguments) == 0
    case.land([{"id": number + 1}])
    assert case.update().state == "COMPLETED"
    assert both(case) == list(range(1, number + 2))


def test_spark_still_calls_it_a_wrong_base_path(spark, tmp_path: Path):
    """The day this fails, Spark names a moved folder itself, or goes on."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.json").write_text('{"id": 1}\n')

    def run(folder: str) -> None:
        stream = spark.readStream.schema("id INT").json(str(tmp_path / folder))
        query = stream.writeStream.trigger(availableNow=True).format("noop")
        query.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()

    run("in")
    for name in ("0", ".0.crc"):
        (tmp_path / "checkpoint/commits" / name).unlink(missing_ok=True)
    (tmp_path / "in").rename(tmp_path / "moved")
    with pytest.raises(PySparkException, match="Wrong basePath"):
        run("moved")
