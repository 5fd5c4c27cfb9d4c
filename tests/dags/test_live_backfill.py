"""Airflow's own backfill over dates: a run for each interval, which is the range that its task fills."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from tests.dags.live_airflow import wait_for

from headwater_demo.airflow_client import AirflowRefused

pytestmark = pytest.mark.timeout(300)
DAG = "stream_backfill"


def asked_for(airflow):
    """The arguments of each driver of a backfill so far."""
    file = airflow.folder / "stream.jsonl"
    lines = map(json.loads, file.read_text().splitlines() if file.exists() else [])
    return [line["arguments"] for line in lines if line["what"] == "backfill"]


def made(client):
    """Airflow makes it; on SQLite it answers 503 while another of its services writes, and leaves nothing behind."""
    try:
        client.backfill(DAG, "2026-01-05T00:00:00Z", "2026-01-06T00:00:00Z", dry_run=False)
    except AirflowRefused as refused:
        if "503" in str(refused):
            return False
        raise
    return True


def test_each_day_of_a_backfill_is_a_range(live_airflow):
    """Two days make two runs with their ranges; the run of the schedule is skipped, a wrong form is no run, and a day that is
    cleared is filled again."""
    client = live_airflow.client
    client.wait_for_dag(DAG, 60)
    with pytest.raises(AirflowRefused, match="400"):
        client.trigger(DAG, "wrong", mode="drop")
    client.pause(DAG, paused=False)
    try:
        wait_for(lambda: made(client), 60)
        requests = wait_for(lambda: calls if len(calls := asked_for(live_airflow)) == 2 else None, 120)
        wait_for(lambda: all(run.is_finished for run in client.runs(DAG)) and len(client.runs(DAG)) >= 3, 120)
        done = next(
            run.run_id for run in client.runs(DAG) if client.tasks(DAG, run.run_id)[0].state == "success"
        )
        client.clear_run(DAG, done)
        requests = wait_for(lambda: calls if len(calls := asked_for(live_airflow)) == 3 else None, 120)
        wait_for(lambda: all(run.is_finished for run in client.runs(DAG)), 120)
    finally:
        client.pause(DAG, paused=True)
    *requests, again = requests
    ranges = sorted(
        [argument for argument in call if argument.startswith(("--from", "--to"))] for call in requests
    )
    days = [f"2026-01-0{day}T00:00:00+00:00" for day in (5, 6, 7)]
    assert ranges == [[f"--from={first}", f"--to={end}"] for first, end in pairwise(days)]
    assert not any("--dry-run" in call for call in requests)
    assert ("--again" in again, any("--again" in call for call in requests)) == (True, False)
    assert len(asked_for(live_airflow)) == 3
    states = {client.tasks(DAG, run.run_id)[0].state for run in client.runs(DAG)}
    assert states == {"success", "skipped"}
