"""The DAGs of many pipelines, made by one call, against as many DAG files of one task, written by hand.

Both are parsed as the DAG processor does: a forked process for each file, two at once, which imports and serializes.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
import tests.dags.airflow_home  # noqa: F401 - before Airflow
from tests.benchmarks.frame.bench import Bench
from tests.benchmarks.frame.comparison import at_most
from tests.benchmarks.frame.runs import Run
from tests.dags.pipeline_folder import write_pipeline

CHECKOUT = Path(__file__).resolve().parents[2]
OURS, PEER = "pipelines", "by hand"
BY_HAND = """
from datetime import datetime

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

with DAG("hand_{number}", schedule="@hourly", start_date=datetime(2025, 1, 1), catchup=False) as dag:
    BashOperator(task_id="work", bash_command="true")
"""
PROCESSOR = """
import json, logging, os, sys, time
from pathlib import Path
logging.disable(logging.CRITICAL)
from airflow.dag_processing.dagbag import DagBag
from airflow.serialization.serialized_objects import DagSerialization
import airflow.providers.standard.operators.bash, headwater_airflow.pipelines

def child(file):
    bag = DagBag(str(file), bundle_path=file.parent)
    sizes = [len(json.dumps(DagSerialization.to_dict(dag), default=str)) for dag in bag.dags.values()]
    with open(sys.argv[2], "a") as notes:
        notes.write(json.dumps([str(file.parent), len(bag.import_errors), sizes]) + chr(10))
    os._exit(0)

def parse(folder):
    started, running = time.perf_counter(), 0
    for file in sorted(folder.glob("*.py")):
        if running == 2:
            os.wait(); running -= 1
        if os.fork() == 0:
            child(file)
        running += 1
    for _ in range(running):
        os.wait()
    return time.perf_counter() - started

def measured(folder):
    used = os.times()
    wall = parse(Path(folder))
    now = os.times()
    return wall, sum(now[:4]) - sum(used[:4])

folders, rounds = sys.argv[3:], []
for number in range(int(sys.argv[1])):
    order = folders if number % 2 else folders[::-1]
    taken = {folder: measured(folder) for folder in order}
    rounds.append([taken[folder] for folder in folders])
print(json.dumps(rounds))
"""


def test_parse(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """200 pipelines of five tables, 1,000 DAGs with 3,600 tasks, take at most 1.2 times as long as 200 files of one task."""
    measure(bench, tmp_path, monkeypatch)
    bench.finish()


def measure(bench: Bench, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both folders are parsed in turns, by a process that has Airflow imported."""
    pipelines = bench.size("pipelines", 200, smoke=2)
    rounds = bench.size("rounds", 5, smoke=1)
    for name in ("pipelines", "storage", "warehouse", "hand", "ours"):
        (root / name).mkdir()
        monkeypatch.setenv(f"HEADWATER_{name.upper()}", str(root / name))
    tables = {f"table_{n}": ([f"table_{n - 1}"] if n else []) for n in range(5)}
    for number in range(pipelines):
        write_pipeline(root / "pipelines" / f"pipeline_{number}", tables)
        (root / "hand" / f"hand_{number}.py").write_text(BY_HAND.format(number=number))
    (root / "ours" / "pipelines.py").write_text((CHECKOUT / "dags" / "pipelines.py").read_text())
    floors = os.pathsep.join(str(CHECKOUT / floor) for floor in ("include", "jobs", "plugins"))
    folders, notes = {PEER: str(root / "hand"), OURS: str(root / "ours")}, root / "notes"
    done = subprocess.run(
        [sys.executable, "-c", PROCESSOR, str(rounds), str(notes), *folders.values()],
        env={**os.environ, "PYTHONPATH": floors},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    made = [json.loads(line) for line in notes.read_text().split("\n") if line]
    assert [errors for _, errors, _ in made if errors] == []
    sizes = {
        name: [size for place, _, found in made if place == folder for size in found]
        for name, folder in folders.items()
    }
    assert (len(sizes[PEER]), len(sizes[OURS])) == (pipelines * rounds, 5 * pipelines * rounds)
    taken = json.loads(done.stdout.splitlines()[-1])
    part = f"{pipelines} pipelines"
    bench.parts[part] = {name: [Run(*found[side]) for found in taken] for side, name in enumerate(folders)}
    bench.compare(part, OURS, PEER, at_most(1.2))
    bench.report(
        "bytes of a serialized DAG", {name: round(statistics.mean(found)) for name, found in sizes.items()}
    )
