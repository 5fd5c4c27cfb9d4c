"""Sensors and change feeds in a running Airflow: real scheduler, triggerer and workers, and SIGKILL."""

from __future__ import annotations

import shutil
import time

import pytest
from deltalake import DeltaTable
from tests.dags.live_airflow import wait_for, wait_until_equal
from tests.dags.web_hook import SECRET

pytestmark = pytest.mark.timeout(400)


def ranges(notes):
    return [(note["start_version"], note["end_version"], note["ids"]) for note in notes]


@pytest.fixture(scope="module")
def airflow(live_airflow):
    """Airflow with everything under way: watchers take some seconds to start, and sensors to run out of time."""
    for table in ("waited_for", "made_anew"):
        live_airflow.commit(table, 1)
    live_airflow.commit("orders", 1, 2)
    for dag_id in ("waits", "every_change", "only_deletes", "medallion_checks"):
        live_airflow.client.pause(dag_id, paused=False)
    live_airflow.client.trigger("waits", "run")
    live_airflow.client.trigger("medallion_checks", "first")
    return live_airflow


def test_sensors_end_well_late_and_in_vain(airflow):
    """In the triggerer: one is met while it waits, one runs out of time, one waits for what can't come."""

    def states():
        return {task.task_id: task.state for task in airflow.client.tasks("waits", "run")}

    def left_by_their_workers():
        # Airflow's scheduler takes a task that is woken before it has heard that its worker is done for one that was killed.
        lines = airflow.services.log("scheduler").read_text().splitlines()
        heard = [line for line in lines if "Received executor event" in line and "dag_id='waits'" in line]
        return all(any(f"task_id='{task}'" in line for line in heard) for task in ("met", "in_vain"))

    # All tasks of this module start at once, which takes a busy machine a minute.
    wait_for(lambda: states().get("met") == states().get("in_vain") == "deferred", 150)
    wait_for(left_by_their_workers)
    airflow.commit("waited_for", 2)
    shutil.rmtree(airflow.table("made_anew"))
    airflow.commit("made_anew", 1)
    # Each ends by itself; how soon they are looked at depends on what else the machine does.
    ended = {"met": "success", "late": "failed", "in_vain": "failed"}
    wait_until_equal(states, ended, seconds=150)
    late, in_vain = (
        airflow.services.task_log("waits", "run", task, 1).read_text() for task in ("late", "in_vain")
    )
    assert "AirflowSensorTimeout" in late
    assert "recreated while its changes were waited for" in in_vain


def test_every_commit_wakes_its_reader_once_though_the_triggerer_is_killed(airflow):
    """Killed before a commit is seen, and just after its event was stored: each range is read once, by one run."""

    def states():
        runs = airflow.client.runs("every_change")
        return [task.state for run in runs for task in airflow.client.tasks("every_change", run.run_id)]

    wait_for(lambda: airflow.notes("every_change"), 90)
    assert ranges(airflow.notes("every_change")) == [(0, 0, [1, 2])]

    airflow.kill("triggerer")
    airflow.commit("orders", 3)
    airflow.commit("orders", 4)
    airflow.restart("triggerer")
    wait_for(lambda: len(airflow.notes("every_change")) == 2)

    runs = len(airflow.client.runs("every_change"))
    airflow.commit("orders", 5)
    wait_for(lambda: len(airflow.client.runs("every_change")) > runs, every=0.05)
    airflow.kill("triggerer")
    airflow.restart("triggerer")
    wait_for(lambda: len(airflow.notes("every_change")) == 3)

    # Nobody is woken by these: the next change is read alone, and is the only event of the other DAG.
    table = DeltaTable(airflow.table("orders"))
    table.optimize.compact()
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    time.sleep(3)
    deleted = DeltaTable(airflow.table("orders")).version() + 1
    DeltaTable(airflow.table("orders")).delete("id = 2")
    wait_for(lambda: len(airflow.notes("every_change")) == 4, 90)
    wait_for(lambda: airflow.notes("only_deletes"))
    first = [(0, 0, [1, 2]), (1, 2, [3, 4]), (3, 3, [5])]
    notes = airflow.notes("every_change")
    assert ranges(notes)[:3] == first
    assert notes[3]["end_version"] == deleted
    assert (notes[3]["ids"], notes[3]["counts"]["delete"]) == ([2], 1)
    # A reader that was never woken before begins with all that there is.
    assert [note["snapshot"] for note in airflow.notes("only_deletes")] == [True]
    # The kill after the event was stored may cost one more run, which is skipped.
    for dag_id in ("every_change", "only_deletes"):
        wait_for(lambda dag_id=dag_id: airflow.finished_runs(dag_id) == len(airflow.client.runs(dag_id)))
    assert airflow.finished_runs("only_deletes") == 1
    wait_for(lambda: sorted(states()) in (["success"] * 4, ["skipped", *["success"] * 4]))


def test_a_broken_limit_is_red_and_told_once_and_the_hooks_secret_is_nowhere(airflow):
    """Two runs of the check DAG send one alert; the path of the web hook is in no log and no answer of Airflow."""

    def states(run):
        return {task.task_id: task.state for task in airflow.client.tasks("medallion_checks", run)}

    expected = {"lag": "success", "freshness": "failed", "checkpoints": "success"}
    wait_until_equal(lambda: states("first"), expected)
    airflow.client.trigger("medallion_checks", "second")
    wait_until_equal(lambda: states("second"), expected)
    ((path, alert),) = airflow.hook.requests
    assert path == f"/{SECRET}"
    assert (alert["check"], alert["state"], len(alert["lines"])) == ("freshness", "open", 3)
    secret = SECRET.rpartition("/")[2]
    logs = [file for file in airflow.services.home.rglob("*.log") if file.is_file()]
    assert any("freshness" in str(file) for file in logs)
    assert [file for file in logs if secret in file.read_text(errors="replace")] == []
    assert "freshness" in (database := airflow.database())
    assert secret not in database
    assert secret.encode().hex() not in database
