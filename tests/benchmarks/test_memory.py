"""The memory of what runs for long: a driver over many rounds, the process of the page, a triggerer with 200 watchers."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import tests.dags.airflow_home  # noqa: F401 - before Airflow, which the processes of Airflow import
from deltalake import DeltaTable
from tests.benchmarks.frame.bench import Bench
from tests.benchmarks.frame.driver import Driver
from tests.benchmarks.frame.latencies import percentile
from tests.benchmarks.frame.process_memory import live_heap, resident
from tests.benchmarks.frame.programs import CHECKOUT, FLOORS
from tests.benchmarks.frame.slopes import slope
from tests.dags.observed_pipeline import many_tables, write_observed_pipeline
from tests.dags.pipeline_folder import write_files_pipeline

from headwater.files.json_lines import lines_of

# The stream of the benchmark of recovery, in rounds.
TABLES = Path(__file__).parent / "recovered" / "transformations" / "tables.py"
SPEC = """\
name: long_stream
schema: bench
configuration: {landing: landing}
trigger: {processing_time: 100 milliseconds, run_for: %s seconds}
"""
SAMPLE_SECONDS = 1.0
# Each look at the heap is a full collection.
HEAP_SECONDS = 10.0
# What is watched, and by what.
WATCHES = {
    "nothing": "Airflow alone",
    "files": "Airflow's own trigger for a file",
    "data": "a watch of a pipeline's data",
}


def test_memory(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reported: what each holds, and how fast it grows once a third of the work is done."""
    folders = {name: tmp_path / name for name in ("driver", "page", "triggerer")}
    for folder in folders.values():
        folder.mkdir()
    measure_driver(bench, folders["driver"])
    measure_page(bench, folders["page"], monkeypatch)
    measure_triggerer(bench, folders["triggerer"], monkeypatch)
    bench.finish()


def measure_driver(bench: Bench, root: Path) -> None:
    """A driver of one stream in rounds, each of which takes in what has landed since the last."""
    seconds = bench.size("seconds_of_the_stream", int(bench.seconds), smoke=0)
    landing, folder, began = root / "landing", root / "long_stream", time.monotonic()
    landing.mkdir()
    (folder / "transformations").mkdir(parents=True)
    (folder / "pipeline.yml").write_text(SPEC % seconds)
    (folder / "transformations" / "tables.py").write_text(TABLES.read_text())
    command = [
        sys.executable, "-m", "headwater", "run", str(folder), "--storage", str(root / "storage"),
        "--warehouse", str(root / "warehouse"), "--param", f"landing={landing}",
    ]  # fmt: skip
    driver = Driver(command, root / "driver.log")
    driver.start()
    assert driver.process is not None
    table = root / "warehouse/bench/copied"
    samples: dict[str, list[tuple[float, float]]] = {"Python": [], "JVM": [], "JVM's heap": []}
    files, looked_at_heap, done = 0, began, False
    try:
        while not done:
            _land(landing, files)
            files += 1
            rounds = _version(table) + 1
            heap_is_due = time.monotonic() - looked_at_heap >= HEAP_SECONDS
            looked_at_heap = time.monotonic() if heap_is_due else looked_at_heap
            if files % 4 == 0:
                _sample(driver, samples, rounds, heap=heap_is_due and rounds > 0)
            # Four files a second: a round takes some tenths of a second, and finds one.
            time.sleep(SAMPLE_SECONDS / 4)
            done = driver.process.poll() is not None
    finally:
        driver.kill()
    assert driver.process.returncode == 0, (root / "driver.log").read_text()[-3000:]
    rows = DeltaTable(str(table)).to_pyarrow_table(columns=["id"])["id"].to_pylist()
    assert sorted(rows) == list(range(len(rows)))
    assert 0 < len(rows) <= files
    bench.report("driver: rounds with rows", _version(table) + 1)
    for name, taken in samples.items():
        if taken:
            _report(bench, f"driver, {name}", taken, per=100, unit="100 rounds")


def measure_page(bench: Bench, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page of a pipeline of 50 tables, the list of pipelines, the batches of a flow, and the figures for Prometheus."""
    requests = bench.size("requests", 2000 if bench.seconds > 200 else 800, smoke=0)
    _folders(root, monkeypatch)
    write_observed_pipeline(root, "many", datasets=many_tables(50))
    seen = _program("page_server", [str(requests)])
    _report(bench, "page", seen["memory"], per=1000, unit="1,000 requests")
    bench.report("page of 50 tables, milliseconds (median)", round(statistics.median(seen["seconds"]) * 1000))


def measure_triggerer(bench: Bench, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop with the watches of 200 pipelines, each of which looks once a second, beside one with Airflow's own and an empty one."""
    watchers = bench.size("watchers", 200, smoke=0)
    seconds = bench.size("seconds_of_watching", max(20, int(bench.seconds / 6)), smoke=0)
    monkeypatch.setenv("HEADWATER_DATA_POLL_SECONDS", "1")
    for kind, name in WATCHES.items():
        place = root / kind
        _folders(place, monkeypatch)
        landings = [write_files_pipeline(place, f"p{number:03}") for number in range(watchers)]
        seen = _program("watchers", [kind, str(seconds), *map(str, landings)])
        expected = [landing.name for landing in landings] if kind != "nothing" else []
        assert seen["announced"] == expected, f"{kind}: {len(seen['announced'])} were announced"
        label = f"triggerer with {watchers} of {name}" if kind != "nothing" else f"triggerer, {name}"
        _report(bench, label, seen["memory"], per=60, unit="minute")
        late = [max(0.0, value) * 1000 for value in seen["late"]]
        bench.report(
            f"{label}: milliseconds by which the loop is late",
            {"median": f"{percentile(late, 0.5):.1f}", "p99": f"{percentile(late, 0.99):.1f}"},
        )
        bench.report(f"{label}: share of a core", f"{seen['cpu'] / seconds:.2f}")


def _report(bench: Bench, label: str, samples: Sequence[tuple[float, float]], *, per: int, unit: str) -> None:
    """The size at the end, and by how much it grew once a third was over."""
    steady = samples[len(samples) // 3 :]
    bench.report(
        f"{label}, MB",
        {
            "at the end": round(steady[-1][1]),
            f"more with each {unit} after the first third": f"{slope(*zip(*steady, strict=True)) * per:.1f}",
        },
    )


def _sample(
    driver: Driver, samples: dict[str, list[tuple[float, float]]], rounds: int, *, heap: bool
) -> None:
    for process in driver.tree():
        name = "JVM" if process.name() == "java" else "Python"
        samples[name].append((rounds, resident(process)))
        size = live_heap(process.pid) if heap and name == "JVM" else None
        if size is not None:
            samples["JVM's heap"].append((rounds, size))


def _program(name: str, arguments: Sequence[str]) -> dict[str, Any]:
    """Run a program of Airflow's floor to its end; what its last line says."""
    paths = os.pathsep.join([str(CHECKOUT), FLOORS["PYTHONPATH"]])
    done = subprocess.run(
        [sys.executable, "-m", f"tests.benchmarks.processes.{name}", *arguments],
        env={**os.environ, "PYTHONPATH": paths}, cwd=CHECKOUT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    answer: dict[str, Any] = json.loads(lines_of(done.stdout)[-1])
    return answer


def _folders(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow's floor finds pipelines and tables below this folder."""
    for name in ("pipelines", "storage", "warehouse"):
        (root / name).mkdir(parents=True)
        monkeypatch.setenv(f"HEADWATER_{name.upper()}", str(root / name))


def _version(table: Path) -> int:
    return max((int(file.stem) for file in (table / "_delta_log").glob("*.json")), default=-1)


def _land(folder: Path, number: int) -> None:
    hidden = folder / f".{number:06}"
    hidden.write_text(json.dumps({"id": number, "customer": "c"}))
    hidden.rename(folder / f"{number:06}.json")
