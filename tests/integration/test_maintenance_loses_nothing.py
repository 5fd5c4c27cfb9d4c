"""Files are put together and removed under streams that are far behind, and every row still arrives, once."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout

import pytest
from deltalake import DeltaTable
from tests.pipeline_case import PipelineCase

import run_maintenance
from headwater.commands.command_line import main

SOURCE = """
@dp.table(table_properties={"pipelines.autoOptimize.zOrderCols": "id"})
def bronze():
    return spark.readStream.format("json").schema("id INT").load(LANDING + "/rows")

@dp.table
def silver():
    return spark.readStream.table("bronze").selectExpr("id", "id * 10 AS ten")

@dp.table(cluster_by=["id"])
def clustered():
    return spark.readStream.table("bronze")
"""
AT_WORK = ["bronze", "clustered"]


@pytest.fixture
def maintain(monkeypatch):
    """Call the verb; what it gives to a driver is run in this process."""

    def in_process(_, argv):
        shown = io.StringIO()
        with redirect_stdout(shown):
            run_maintenance.main(argv)
        return json.loads(shown.getvalue().splitlines()[-1])

    monkeypatch.setattr("headwater.commands.maintenance.report_of_program", in_process)

    def call(case: PipelineCase, *arguments: str):
        roots = [f"--storage={case.storage}", f"--warehouse={case.warehouse}", "--json"]
        shown = io.StringIO()
        with redirect_stdout(shown):
            code = main(["maintenance", str(case.folder), *arguments, *roots])
        return code, json.loads(shown.getvalue().splitlines()[-1])

    return call


def land(case: PipelineCase, number: int) -> None:
    case.land([{"id": number * 2}, {"id": number * 2 + 1}], "rows")


def files(case: PipelineCase, name: str) -> set[str]:
    return {path.name for path in case.table(name).rglob("*.parquet") if "_delta_log" not in path.parts}


def live(case: PipelineCase, name: str) -> set[str]:
    return {uri.rpartition("/")[2] for uri in DeltaTable(str(case.table(name))).file_uris()}


def operations(case: PipelineCase, name: str) -> list[str]:
    return [entry["operation"] for entry in DeltaTable(str(case.table(name))).history()]


def test_streams_far_behind_read_on_after_everything_that_may_go_is_gone(pipeline, maintain):
    """Rewritten, clustered and vacuumed with no retention at all: the tables hold what the files say, each row once."""
    case = pipeline(SOURCE)
    land(case, 1)
    assert case.update().state == "COMPLETED"
    land(case, 2)
    assert case.update(tables=AT_WORK).state == "COMPLETED"

    code, answer = maintain(case, "--retention", "0 hours")
    due = {(step["kind"], step["subject"]): step for step in answer["plan"]["steps"]}
    assert code == 0
    assert due[("optimize", "bronze")]["what"] == "z-order by id"
    assert due[("optimize", "clustered")]["engine"] == "spark"

    code, answer = maintain(case, "--retention", "0 hours", "--yes")
    assert (code, {step["state"] for step in answer["steps"]}) == (0, {"COMPLETED"})
    assert len(live(case, "bronze")) == 1
    assert operations(case, "clustered")[0] == "OPTIMIZE"
    # What the stream into silver has before it is still there, beside the newest version.
    assert files(case, "bronze") > live(case, "bronze")

    # A driver killed after its commit: the batch comes again, and the table still knows it.
    commits = case.checkpoint("bronze").epoch_folder(0) / "commits"
    (commits / "1").unlink()
    land(case, 3)
    report = case.update()
    assert report.state == "COMPLETED", report.error
    ids = list(range(2, 8))
    assert case.rows("bronze") == case.rows("clustered") == [(number,) for number in ids]
    assert case.rows("silver") == [(number, number * 10) for number in ids]

    # Everybody is at the head now: what was kept for them goes, and nothing else.
    arguments = ("--retention", "0 hours", "--only", "vacuum", "--yes")
    assert maintain(case, *arguments)[0] == 0
    assert files(case, "bronze") == live(case, "bronze")


def test_times_at_the_ends_of_the_calendar(pipeline, maintain):
    """The year 9999, for what has no end, and one before 1582 are what they were after a compaction, and to other engines."""
    case = pipeline(
        "@dp.table\ndef bronze():\n"
        '    return spark.readStream.format("json").schema("id INT, at TIMESTAMP").load(LANDING + "/rows")\n'
    )
    times = [
        "9999-12-31T23:59:59.000Z",
        "1500-02-28T00:00:00.000Z",
        "2026-01-31T00:00:00.000Z",
        "1969-12-31T23:59:59.000Z",
    ]
    for number, time in enumerate(times):
        case.land([{"id": number, "at": time}], "rows")
        assert case.update().state == "COMPLETED"
    expected = [f"{time[:19]}Z" for time in times]

    def read() -> list[str]:
        rows = DeltaTable(str(case.table("bronze"))).to_pyarrow_table().sort_by("id")
        return [f"{value.as_py():%Y-%m-%dT%H:%M:%SZ}" for value in rows["at"]]

    assert read() == expected
    code, answer = maintain(case, "--only", "optimize", "--yes")
    assert (code, [step["state"] for step in answer["steps"]]) == (0, ["COMPLETED"])
    assert read() == expected
    assert len(live(case, "bronze")) == 1
