"""In a running Airflow: rows that nobody was woken for wake whoever waits with the next update, and `update` cleared alone speaks for all.

So does a backfill for the tables that it filled.
"""

from __future__ import annotations

import json
import sys

import pytest
from tests.dags.live_airflow import wait_for, wait_until_equal
from tests.dags.pipeline_folder import MEDALLION, write_pipeline

pytestmark = pytest.mark.timeout(300)
DAG_FILE = """
import json
from datetime import datetime

from airflow.sdk import DAG, task

from headwater_airflow.assets import table_asset
from headwater_airflow.dag import PipelineBackfillDag, PipelineDag
from headwater_airflow.driver import submission

submission.spark_submit = lambda: {program!r}
submission.java_environment = dict
submission.submit_conf = lambda conf, local: {{}}
settings = {{"default_args": {{"retries": 0}}, "schedule": None}}
tables = PipelineDag("tables", **settings)
together = PipelineDag("together", **settings)
fill = PipelineBackfillDag("tables", **settings)


def waits_for(pipeline):
    with DAG("waits_for_" + pipeline, schedule=[table_asset(pipeline, "bronze")], start_date=datetime(2025, 1, 1)) as dag:

        @task
        def note(triggering_asset_events=None):
            with open({notes!r}, "a") as notes:
                for events in triggering_asset_events.values():
                    for event in events:
                        notes.write(json.dumps([pipeline, event.extra["rows"], event.extra.get("backfill_id") or event.extra["update_id"]]) + "\\n")

        note()
    return dag


waits_for_tables, waits_for_together = waits_for("tables"), waits_for("together")
"""
CUT_OFF = {"bronze": "cut off", "silver": "skipped", "gold": "skipped"}
NOTHING = dict.fromkeys(MEDALLION, 0)
COUNTS = {
    "input_rows": 9,
    "dropped_rows": 0,
    "quarantined_rows": 0,
    "replaced_rows": 5,
    "mode": "append",
    "version": 3,
}
FILLED = {
    "state": "COMPLETED",
    "backfill_id": "fill",
    "flows": [{"dataset": "bronze", "flow": "bronze", "state": "COMPLETED", "output_rows": 9, **COUNTS}],
}


class Announced:
    """Two pipelines: one with a task for each table, one whose only task announces all tables."""

    pipelines = ("tables", "together")

    def __init__(self, airflow) -> None:
        self.airflow, self.client = airflow, airflow.client
        self.notes_file = airflow.folder / "announced.jsonl"
        for name in self.pipelines:
            write_pipeline(airflow.folder / "pipelines" / name, airflow="{dags: []}")
        # Its manifest is older than its sources: their tables may be others, and have no tasks.
        (airflow.folder / "pipelines" / "together" / "transformations" / "tables.py").write_text("# new\n")
        program = airflow.folder / "fake-updates"
        self.will_do = airflow.folder / "fake_updates.json"
        program.write_text(
            f"#!/bin/sh\ncase \"$*\" in *run_backfill.py*) echo '{json.dumps(FILLED)}'; exit ;; esac\n"
            f'FAKE_DRIVER={self.will_do} exec {sys.executable} -m tests.dags.fake_spark_submit "$@"\n'
        )
        program.chmod(0o755)
        file = DAG_FILE.format(program=str(program), notes=str(self.notes_file))
        (airflow.folder / "dags" / "announced.py").write_text(file)
        self.dags = [*self.pipelines, "tables_backfill", *(f"waits_for_{name}" for name in self.pipelines)]
        for dag_id in self.dags:
            self.client.wait_for_dag(dag_id, 60)
            self.client.pause(dag_id, paused=False)

    def will(self, update: str, flows: dict, **more) -> None:
        """What each try of the driver does from now on."""
        report = {"state": "COMPLETED", "flows": []}
        self.will_do.write_text(
            json.dumps([{"update": update, "flows": flows, "report": report, **more}] * 3)
        )

    def ran(self, run_id: str) -> dict[str, str]:
        """A run of both pipelines, to its end; gives their states."""
        for name in self.pipelines:
            self.client.trigger(name, run_id)
        return self.ended(run_id)

    def ended(self, run_id: str) -> dict[str, str]:
        """The states of both runs, once they have ended."""

        def states():
            runs = {name: self.client.runs(name) for name in self.pipelines}
            ended = {name: run.state for name in runs for run in runs[name] if run.run_id == run_id}
            return ended if set(ended.values()) <= {"success", "failed"} else None

        return wait_for(states, 120)

    def notes(self) -> list[list]:
        """Who was woken, with how many rows of which update."""
        lines = self.notes_file.read_text().splitlines() if self.notes_file.exists() else []
        return sorted(map(json.loads, lines))


@pytest.fixture
def announced(live_airflow):
    watched = Announced(live_airflow)
    yield watched
    for dag_id in watched.dags:
        watched.client.pause(dag_id, paused=True)
    (live_airflow.folder / "dags" / "announced.py").unlink()


def test_whoever_waits_for_a_table_hears_of_all_its_rows_once(announced):
    """An update fails after it wrote: the next one, which finds nothing, wakes. Cleared alone, `update` announces what it writes then;
    a backfill announces what it fills.
    """
    announced.will("first", CUT_OFF, exit=1)
    assert announced.ran("one") == {"tables": "failed", "together": "failed"}
    announced.will("second", NOTHING)
    assert announced.ran("two") == {"tables": "success", "together": "success"}
    woken = [[name, 3, "first"] for name in announced.pipelines]
    wait_until_equal(announced.notes, woken)

    announced.will("third", {**NOTHING, "bronze": 2})
    clear = {"dry_run": False, "only_failed": False, "dag_run_id": "two", "task_ids": ["update"]}
    for name in announced.pipelines:
        announced.client._request("POST", f"/dags/{name}/clearTaskInstances", json=clear)
    woken = sorted([*woken, *([name, 2, "third"] for name in announced.pipelines)])
    wait_until_equal(announced.notes, woken)
    assert announced.ended("two") == {"tables": "success", "together": "success"}

    for name in announced.pipelines:
        wait_for(lambda name=name: announced.airflow.finished_runs(f"waits_for_{name}") == 2)
        assert len(announced.client.runs(f"waits_for_{name}")) == 2
    assert announced.notes() == woken

    day = {"from": "2026-01-01", "to": "2026-01-02", "column": "at", "tables": ["bronze"]}
    announced.client.trigger("tables_backfill", "fill", dry_run=False, **day)
    wait_until_equal(announced.notes, sorted([*woken, ["tables", 9, "fill"]]))
