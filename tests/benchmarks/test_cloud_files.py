"""cloudFiles against plain ``readStream.json`` with the schema given.

``cloud`` is the default mode (schema inferred and known, new fields looked for, data rescued), ``given`` the mode of
a schema that is given (``none``).
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
from pathlib import Path

import pytest
from tests.pipeline_case import SPARK, PipelineCase

from headwater_spark.session import start_session

ROWS = int(os.environ.get("BENCH_ROWS", "1000000"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "5"))
FILES = 8
# The aim. The default mode does not reach it yet: 0.80 was measured, as docs/cloud-files.md says.
FLOORS = {"cloud": 0.9, "given": 0.9}
SCHEMA = "id BIGINT, customer STRING, amount DOUBLE, country STRING, at STRING"
PLAIN = f"""
@dp.table
def events():
    return spark.readStream.schema("{SCHEMA}").json(LANDING)
"""
CLOUD = """
@dp.table
def events():
    return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
            .option("cloudFiles.inferColumnTypes", "true").load(LANDING))
"""
GIVEN = f"""
@dp.table
def events():
    return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("{SCHEMA}").load(LANDING))
"""


def _line(number: int) -> str:
    row = {"id": number, "customer": f"c{number % 977}", "amount": (number % 2000) / 8 + 0.5}
    return json.dumps({**row, "country": "de", "at": "first of May"}) + "\n"


def _made(folder: Path) -> list[Path]:
    folder.mkdir(parents=True)
    files = []
    for part in range(FILES):
        files.append(folder / f"part-{part}.json")
        with files[-1].open("w") as stream:
            stream.writelines(_line(number) for number in range(part, ROWS, FILES))
    return files


def _seconds(case: PipelineCase, lot: Path, files: list[Path]) -> float:
    """Land the files and take them in; the seconds of the flow, from its start to its last commit."""
    for file in files:
        shutil.copy(file, lot.with_name(f"{lot.name}-{file.name}"))
    report = case.update()
    assert report.state == "COMPLETED", report.error
    assert report["events"].output_rows == ROWS
    return report["events"].seconds


@pytest.mark.timeout(1800)
def test_cloud_files_keep_up_with_plain_json(tmp_path: Path) -> None:
    """Rows a second stay above a floor, relative to the plain stream: medians of interleaved runs in one session."""
    spark = start_session("tests", SPARK)
    try:
        files = _made(tmp_path / "made")
        cases = {
            name: PipelineCase(tmp_path / name, source)
            for name, source in (("plain", PLAIN), ("cloud", CLOUD), ("given", GIVEN))
        }
        for case in cases.values():  # the schema is known and the code is warm before the clock runs
            (case.landing / "first.json").write_text("".join(map(_line, range(1000))))
            assert case.update().state == "COMPLETED"
        times: dict[str, list[float]] = {name: [] for name in cases}
        for number in range(ROUNDS):
            order = list(cases) if number % 2 else list(cases)[::-1]
            for name in order:
                case = cases[name]
                times[name].append(_seconds(case, case.landing / f"lot-{number}", files))
    finally:
        spark.stop()
    rates = {name: ROWS / statistics.median(found) for name, found in times.items()}
    ratios = {name: round(rate / rates["plain"], 3) for name, rate in rates.items()}
    print(
        f"\n{', '.join(f'{name} {rate:,.0f} rows/s' for name, rate in rates.items())}; ratios {ratios}; {times}"
    )
    assert {name: ratios[name] for name, floor in FLOORS.items() if ratios[name] < floor} == {}
