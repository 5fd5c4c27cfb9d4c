"""The memory of a driver over many rounds of a long stream."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
from deltalake import DeltaTable
from tests.benchmarks.frame.bench import Bench
from tests.benchmarks.frame.programs import FLOORS

# The stream of the benchmark of recovery, in rounds.
TABLES = Path(__file__).parent / "recovered" / "transformations" / "tables.py"
SPEC = """\
name: long_stream
schema: bench
configuration: {landing: landing}
trigger: {processing_time: 500 milliseconds, run_for: %s seconds}
"""


def test_memory(bench: Bench, tmp_path: Path) -> None:
    """What a driver of rounds holds while a file comes twice a second, and how fast it grows after its first third."""
    seconds = bench.size("seconds_of_the_stream", int(bench.seconds), smoke=0)
    landing, folder, began = tmp_path / "landing", tmp_path / "long_stream", time.monotonic()
    landing.mkdir()
    (folder / "transformations").mkdir(parents=True)
    (folder / "pipeline.yml").write_text(SPEC % seconds)
    (folder / "transformations" / "tables.py").write_text(TABLES.read_text())
    command = [
        sys.executable, "-m", "headwater", "run", str(folder), "--storage", str(tmp_path / "storage"),
        "--warehouse", str(tmp_path / "warehouse"), "--param", f"landing={landing}",
    ]  # fmt: skip
    driver = subprocess.Popen(
        command, env={**os.environ, **FLOORS}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    held: dict[str, list[tuple[float, float]]] = {"Python": [], "JVM": []}
    files = 0
    while driver.poll() is None:
        _land(landing, files)
        files += 1
        for process in _tree(driver.pid):
            name = "JVM" if process.name() == "java" else "Python"
            held[name].append((time.monotonic() - began, process.memory_info().rss / 2**20))
        time.sleep(0.5)
    assert driver.returncode == 0
    table = DeltaTable(str(tmp_path / "warehouse/bench/copied"))
    assert 0 < table.to_pyarrow_table().num_rows <= files
    bench.report("rounds with rows", table.version())
    for name, samples in held.items():
        steady = samples[len(samples) // 3 :]
        bench.report(f"{name}, MB at the end", round(steady[-1][1]))
        bench.report(f"{name}, MB more each minute after the first third", round(_slope(steady) * 60, 2))
    bench.finish()


def _slope(samples: list[tuple[float, float]]) -> float:
    """Of the line through the samples, by least squares."""
    when, size = zip(*samples, strict=True)
    middle, mean = sum(when) / len(when), sum(size) / len(size)
    squares = sum((x - middle) ** 2 for x in when) or 1.0
    return sum((x - middle) * (y - mean) for x, y in samples) / squares


def _tree(pid: int) -> list[psutil.Process]:
    try:
        driver = psutil.Process(pid)
        return [driver, *driver.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _land(folder: Path, number: int) -> None:
    hidden = folder / f".{number:06}"
    hidden.write_text(json.dumps({"id": number, "customer": "c"}))
    hidden.rename(folder / f"{number:06}.json")
