"""cloudFiles against plain ``readStream.json`` with the schema given.

``cloud`` is the default mode (schema inferred and known, new fields looked for, data rescued), ``given`` the mode of
a schema that is given (``none``).
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.benchmarks.frame.bench import Bench
from tests.benchmarks.frame.comparison import throughput
from tests.benchmarks.frame.copying import LIMIT, copy_of
from tests.benchmarks.frame.programs import session
from tests.benchmarks.frame.runs import Run, stopwatch
from tests.pipeline_case import PipelineCase

PEER, OURS, GIVEN = "plain json", "cloudFiles", "cloudFiles, schema given"
SCHEMA = "id BIGINT, customer STRING, amount DOUBLE, country STRING, at STRING"
SOURCES = {
    PEER: f"""
@dp.table
def events():
    return spark.readStream.schema("{SCHEMA}").json(LANDING)
""",
    OURS: """
@dp.table
def events():
    return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
            .option("cloudFiles.inferColumnTypes", "true").load(LANDING))
""",
    GIVEN: f"""
@dp.table
def events():
    return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("{SCHEMA}").load(LANDING))
""",
}


def test_files(bench: Bench, tmp_path: Path) -> None:
    """Rows a second stay at 0.9 of the plain stream's: few large files, and thousands of small ones."""
    session(whole=True)
    measure(bench, tmp_path)
    bench.finish()


def measure(bench: Bench, root: Path) -> None:
    """The schema is known and the code is warm before a lot is landed."""
    rows, files = bench.size("rows", 600_000, smoke=40), bench.size("files", 8, smoke=2)
    many = bench.size("many", 10_000, smoke=4, brief=4_000)
    lots_of = [(f"{files} files", rows, files), (f"{many:,} files", many * 10, many)]
    for part, count, lots in lots_of[:1] if bench.smoke else lots_of:
        made = _made(root / part / "made", count, lots)
        contenders = {name: _Landing(root / part, name, made, count).take_in for name in SOURCES}
        contenders[LIMIT] = lambda number, made=made, part=part: copy_of(made, root / part / f"copy{number}")
        bench.interleaved(part, contenders, share=0.5, least=2 if lots > 1_000 else 3, most=7)
        bench.compare(part, OURS, PEER, throughput(0.9))
        bench.compare(part, GIVEN, PEER, throughput(0.9))
        bench.compare(part, OURS, LIMIT)


class _Landing:
    """A pipeline whose folder gets the same files under new names in each round."""

    def __init__(self, root: Path, name: str, made: Path, rows: int) -> None:
        self.case, self.made, self.rows = (
            PipelineCase(root / name.replace(" ", "-"), SOURCES[name]),
            made,
            rows,
        )
        (self.case.landing / "first.json").write_text("".join(map(_line, range(10))))
        assert self.case.update().state == "COMPLETED"

    def take_in(self, number: int) -> Run:
        """Land a lot and take it in; the seconds are the flow's, from its start to its last commit."""
        for file in os.scandir(self.made):
            os.link(file.path, self.case.landing / f"lot{number}-{file.name}")
        with stopwatch() as watch:
            report = self.case.update()
        assert report.state == "COMPLETED", report.error
        assert report["events"].output_rows == self.rows
        return Run(report["events"].seconds, watch.run.cpu)


def _line(number: int) -> str:
    row = {"id": number, "customer": f"c{number % 977}", "amount": (number % 2000) / 8 + 0.5}
    return json.dumps({**row, "country": "de", "at": "first of May"}) + "\n"


def _made(folder: Path, rows: int, files: int) -> Path:
    folder.mkdir(parents=True)
    for part in range(files):
        (folder / f"part-{part:06}.json").write_text("".join(map(_line, range(part, rows, files))))
    return folder
