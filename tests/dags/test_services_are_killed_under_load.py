"""A real long stream in a running Airflow, each of whose services is killed in turn while files arrive."""

from __future__ import annotations

import itertools
import json
import threading
from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.dags.live_airflow import wait_for
from tests.seeds import SOAK

from headwater_demo.airflow_services import SERVICES

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(not SOAK, reason="a loop of kills over minutes: in make soak"),
]
DAG_FILE = """
from headwater_airflow.dag import PipelineDag

ticks = PipelineDag("ticks")
"""
SPEC = """
name: ticks
schema: shop
trigger: {{processing_time: 1 second, run_for: 25 seconds}}
configuration: {{landing: {landing}}}
spark: {{spark.sql.shuffle.partitions: "1"}}
airflow: {{retries: 3, dags: []}}
"""
SOURCE = """
from headwater import pipelines as dp

@dp.table
@dp.expect_or_drop("counted", "id IS NOT NULL")
def ticks():
    return spark.readStream.schema("id INT, at TIMESTAMP").json(spark.conf.get("landing"))
"""


class Arrivals(threading.Thread):
    """Writes a file of two rows every half second, until it is told to end."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.folder = folder
        self.ended = threading.Event()
        self.rows = 0

    def run(self) -> None:
        for number in itertools.count():
            if self.ended.wait(0.5):
                return
            lines = [json.dumps({"id": 2 * number + more, "at": "2026-01-01T00:00:00Z"}) for more in (0, 1)]
            part = self.folder / f".{number}.json"
            part.write_text("\n".join(lines))
            part.rename(self.folder / f"{number:05d}.json")
            self.rows = 2 * number + 2


@pytest.fixture
def arrivals(live_airflow):
    """The pipeline `ticks` under way, and what arrives for it."""
    folder = live_airflow.folder
    landing = folder / "landing"
    landing.mkdir()
    pipeline = folder / "pipelines" / "ticks"
    (pipeline / "transformations").mkdir(parents=True)
    (pipeline / "pipeline.yml").write_text(SPEC.format(landing=landing))
    (pipeline / "transformations" / "ticks.py").write_text(SOURCE)
    (folder / "dags" / "ticks.py").write_text(DAG_FILE)
    client = live_airflow.client
    client.wait_for_dag("ticks", 60)
    client.pause("ticks", paused=False)
    landed = Arrivals(landing)
    landed.start()
    yield landed
    landed.ended.set()
    client.pause("ticks", paused=True)
    wait_for(lambda: all(run.is_finished for run in client.runs("ticks")), 120)


def test_each_service_is_killed_and_every_row_comes_once(live_airflow, arrivals):
    """Whoever is killed, what had arrived by then is in the table soon after he is back, and nothing is there twice."""
    path = live_airflow.table("ticks")

    def ids() -> list[int]:
        if not (path / "_delta_log").is_dir():
            return []
        return sorted(DeltaTable(path).to_pyarrow_table(columns=["id"])["id"].to_pylist())

    wait_for(ids, 180, every=1)
    for service in SERVICES:
        live_airflow.kill(service)
        live_airflow.restart(service)
        arrived = arrivals.rows
        wait_for(lambda arrived=arrived: len(ids()) >= arrived, 240, every=1)
    arrivals.ended.set()
    arrivals.join()
    wait_for(lambda: len(ids()) >= arrivals.rows, 240, every=1)
    assert ids() == list(range(arrivals.rows))
