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
from tests.dags.pipeline_folder import write_pipeline

CHECKOUT = Path(__file__).resolve().parents[2]
PIPELINES = int(os.environ.get("BENCH_PIPELINES", "200"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
# The aim: ours to theirs.
CEILING = 1.2
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

seconds = [[parse(Path(folder)) for folder in sys.argv[3:]] for _ in range(int(sys.argv[1]))]
print(json.dumps(seconds))
"""


@pytest.mark.timeout(900)
def test_pipelines_parse_no_slower_than_files_of_one_task(tmp_path, monkeypatch):
    """200 pipelines of five tables, 1,000 DAGs with 3,600 tasks, take at most 1.2 times as long as 200 files of one task."""
    for name in ("pipelines", "storage", "warehouse", "hand", "ours"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(f"HEADWATER_{name.upper()}", str(tmp_path / name))
    tables = {f"table_{n}": ([f"table_{n - 1}"] if n else []) for n in range(5)}
    for number in range(PIPELINES):
        write_pipeline(tmp_path / "pipelines" / f"pipeline_{number}", tables)
        (tmp_path / "hand" / f"hand_{number}.py").write_text(BY_HAND.format(number=number))
    (tmp_path / "ours" / "pipelines.py").write_text((CHECKOUT / "dags" / "pipelines.py").read_text())
    floors = os.pathsep.join(str(CHECKOUT / floor) for floor in ("include", "jobs", "plugins"))
    folders = [str(tmp_path / "hand"), str(tmp_path / "ours")]
    notes = tmp_path / "notes"
    done = subprocess.run(
        [sys.executable, "-c", PROCESSOR, str(ROUNDS), str(notes), *folders],
        env={**os.environ, "PYTHONPATH": floors},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    made = [json.loads(line) for line in notes.read_text().split("\n") if line]
    assert [errors for _, errors, _ in made if errors] == []
    sizes = [[size for folder, _, found in made if folder == name for size in found] for name in folders]
    assert [len(found) for found in sizes] == [PIPELINES * ROUNDS, 5 * PIPELINES * ROUNDS]
    rounds = json.loads(done.stdout.splitlines()[-1])
    hand, ours = (statistics.median(found[side] for found in rounds) for side in (0, 1))
    print(f"\nby hand {hand:.1f} s, pipelines {ours:.1f} s: {ours / hand:.2f}; rounds {rounds}")
    print(f"bytes a DAG: by hand {statistics.mean(sizes[0]):.0f}, pipelines {statistics.mean(sizes[1]):.0f}")
    assert ours / hand <= CEILING
