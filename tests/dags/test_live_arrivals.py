"""In a running Airflow: the DAGs of all pipelines from one file, beside one that is wrong, and runs that begin when files land."""

from __future__ import annotations

import json
import shutil
import sys

import pytest
from deltalake import DeltaTable
from tests.dags.live_airflow import wait_for, wait_until_equal
from tests.dags.pipeline_folder import write_pipeline

from headwater.definitions.source import SourceKind
from headwater.graph.manifest import FILE_NAME, SourceEntry, read_manifest
from headwater.graph.pipeline_project import open_project

pytestmark = pytest.mark.timeout(300)
DAG_FILE = """
import os
from headwater_airflow.driver import submission
from headwater_airflow.pipelines import pipeline_dags

submission.spark_submit = lambda: {program!r}
submission.java_environment = dict
submission.submit_conf = lambda conf, local: {{}}
globals().update(pipeline_dags())
"""
SPEC = """
name: landed
schema: shop
airflow:
  dags: [update, checks]
  retries: 0
  check_schedule: null
  schedule: on_data
  on_data: {quiet: 1 second, files: 2, wait: 10 minutes}
"""


class Landed:
    """The pipeline `landed`, what lands, and what its table has."""

    def __init__(self, airflow) -> None:
        self.airflow = airflow
        self.pipelines = airflow.folder / "pipelines"
        self.landing = airflow.folder / "landed_files"
        self.landing.mkdir()
        folder = write_pipeline(self.pipelines / "landed", {"landed": ()})
        (folder / "pipeline.yml").write_text(SPEC)
        manifest = read_manifest(folder / FILE_NAME)
        source = SourceEntry(kind=SourceKind.FILES, streaming=True, path=str(self.landing), format="json")
        flows = tuple(flow.model_copy(update={"sources": (source,)}) for flow in manifest.flows)
        known = {"flows": flows, "source_hash": open_project(folder, storage=airflow.folder).source_hash()}
        (folder / FILE_NAME).write_text(manifest.model_copy(update=known).to_json())
        program = airflow.folder / "fake-arrivals"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m tests.dags.fake_arrivals "$@"\n')
        program.chmod(0o755)
        (airflow.folder / "dags" / "pipelines.py").write_text(DAG_FILE.format(program=str(program)))

    def land(self, *ids: int) -> None:
        """A file for each row, put in its place whole."""
        for id_ in ids:
            part = self.landing / f".{id_}.json"
            part.write_text(json.dumps({"id": id_}))
            part.rename(self.landing / f"{id_}.json")

    def ids(self) -> list[int]:
        table = self.airflow.table("landed")
        if not (table / "_delta_log").is_dir():
            return []
        return sorted(DeltaTable(table).to_pyarrow_table()["id"].to_pylist())

    def runs(self) -> list[str]:
        return [run.state for run in self.airflow.client.runs("landed")]


@pytest.fixture
def landed(live_airflow):
    broken = live_airflow.folder / "pipelines" / "broken"
    broken.mkdir()
    (broken / "pipeline.yml").write_text("name: broken\nairflow: {schedule: now and then}\n")
    found = Landed(live_airflow)
    yield found
    live_airflow.client.pause("landed", paused=True)
    shutil.rmtree(broken, ignore_errors=True)
    (live_airflow.folder / "dags" / "pipelines.py").unlink()


def test_files_land_and_their_rows_are_in_the_table(landed):
    """A wrong pipeline is an import error that leaves the others on their schedule; two files that land make one run, as do two more."""
    client = landed.airflow.client
    client.wait_for_dag("landed", 60)
    client.pause("landed", paused=False)
    errors = wait_for(lambda: [e for e in client.import_errors() if e.startswith("pipelines.py")], 60)
    assert [error.partition(":")[0] for error in errors] == ["pipelines.py (broken)"]
    assert "now and then" in errors[0]
    landed.land(1, 2)
    wait_until_equal(landed.ids, [1, 2], 120)
    wait_until_equal(landed.runs, ["success"], 60)
    dag = client._request("GET", "/dags/landed")
    assert (dag["is_stale"], dag["has_import_errors"]) == (False, False)
    landed.land(3, 4)
    wait_until_equal(landed.ids, [1, 2, 3, 4], 120)
    wait_until_equal(landed.runs, ["success"] * 2, 60)
