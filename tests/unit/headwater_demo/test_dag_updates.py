"""Following updates: the schedule's run or a triggered one, failures with their log, and what is new in the event log."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from headwater.errors import UpdateFailed
from headwater.event_log.reader import FlowResult
from headwater_demo import dag_updates as subject
from headwater_demo.airflow_client import DagRun, TaskState
from headwater_demo.airflow_services import AirflowServices
from headwater_demo.dag_updates import DagUpdates
from headwater_demo.processes import ProcessTable


@dataclass
class FakeClient:
    """An Airflow with one DAG whose runs end as soon as they were looked at once."""

    ends_as: str = "success"
    due: bool = False
    listed: list[DagRun] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    def wait_for_dag(self, dag_id: str, seconds: float) -> None:
        self.calls.append("wait")

    def pause(self, dag_id: str, *, paused: bool) -> None:
        self.calls.append("pause" if paused else "unpause")
        if not paused and self.due:
            self.listed.insert(0, DagRun("scheduled", "queued"))

    def trigger(self, dag_id: str, run_id: str) -> None:
        self.calls.append("trigger")
        self.listed.insert(0, DagRun("triggered", "queued"))

    def fail_run(self, dag_id: str, run_id: str) -> None:
        self.calls.append(f"fail {run_id}")
        self.listed = [
            DagRun(run.run_id, "failed" if run.run_id == run_id else run.state) for run in self.listed
        ]

    def runs(self, dag_id: str) -> list[DagRun]:
        now = list(self.listed)
        following = {"queued": "running", "running": self.ends_as}
        self.listed = [DagRun(run.run_id, following.get(run.state, run.state)) for run in self.listed]
        return now

    def tasks(self, dag_id: str, run_id: str) -> list[TaskState]:
        return [TaskState("orders_bronze", "failed", 1, 1.0), TaskState("update", self.ends_as, 2, 3.0)]


class FakeStep:
    """Keeps what was said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, detail: str) -> None:
        self.said.append(detail)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch):
    """No waiting between two looks."""
    monkeypatch.setattr(subject, "_POLL_SECONDS", 0.0)
    monkeypatch.setattr(subject, "_DUE_SECONDS", 0.01)


@pytest.fixture
def airflow(tmp_path: Path) -> AirflowServices:
    """Services that were never started."""
    return AirflowServices(tmp_path, tmp_path / "airflow", 1, ProcessTable(tmp_path))


def following(airflow: AirflowServices, client: FakeClient) -> DagUpdates:
    """Return the updates of the fake's DAG; its event log is empty."""
    return DagUpdates(airflow, "orders", airflow.home / "state", client)  # type: ignore[arg-type]


def test_a_run_is_triggered_when_none_is_due(airflow: AirflowServices):
    """Without a scheduled run the update is a triggered one, followed to its end."""
    client, step = FakeClient(), FakeStep()
    assert following(airflow, client).next_update(step) == []
    assert client.calls == ["unpause", "trigger"]
    assert "1 of 2 tasks done" in " ".join(step.said)


def test_a_scheduled_run_is_taken(airflow: AirflowServices):
    """When the schedule makes a run at once, no second one is triggered."""
    client = FakeClient(due=True)
    following(airflow, client).next_update(FakeStep())
    assert client.calls == ["unpause"]


def test_unfinished_runs_of_an_earlier_demo_are_cleared(airflow: AirflowServices):
    """What a killed demo left in the queue is failed, and is not mistaken for the next update."""
    client = FakeClient(listed=[DagRun("left", "queued"), DagRun("old", "success")])
    updates = following(airflow, client)
    updates.begin()
    updates.next_update(FakeStep())
    assert client.calls == ["wait", "pause", "fail left", "unpause", "trigger"]


def test_holding_waits_for_what_runs(airflow: AirflowServices):
    """Holding pauses the DAG; a run that is under way is let to its end, which it would not reach while paused."""
    client = FakeClient(listed=[DagRun("one", "running")])
    following(airflow, client).hold()
    assert client.calls == ["pause", "unpause", "pause"]
    assert client.listed == [DagRun("one", "success")]


def test_holding_lets_a_queued_run_end(airflow: AirflowServices):
    """A run that the schedule has just made is let to its end, too: nothing unfinished is left for the next demo to fail."""
    client = FakeClient(listed=[DagRun("next", "queued"), DagRun("one", "success")])
    following(airflow, client).hold()
    assert client.calls == ["pause", "unpause", "pause"]
    assert all(run.is_finished for run in client.listed)
    later = FakeClient(listed=client.listed)
    following(airflow, later).begin()
    assert not [call for call in later.calls if call.startswith("fail")]


def test_holding_has_an_end(airflow: AirflowServices):
    """A run that does not end in time is given up with an error, after which the caller ends Airflow."""
    client = FakeClient(ends_as="running", listed=[DagRun("one", "running")])
    with pytest.raises(UpdateFailed, match="did not end in time"):
        following(airflow, client).hold(0.05)


def test_a_failed_update_shows_the_log_of_the_submit(airflow: AirflowServices):
    """The error names the failed tasks and ends with the log of the one that submits."""
    log = airflow.task_log("orders", "triggered", "update", 2)
    log.parent.mkdir(parents=True)
    log.write_text(json.dumps({"event": "table not found"}) + "\n")
    with pytest.raises(UpdateFailed, match="table not found") as caught:
        following(airflow, FakeClient(ends_as="failed")).next_update(FakeStep())
    assert "orders_bronze, update" in caught.value.what
    assert caught.value.where == str(log)


def test_only_new_requests_are_results(airflow: AirflowServices, monkeypatch: pytest.MonkeyPatch):
    """Requests that were in the event log before are left out; several updates of one request count once."""

    @dataclass
    class Update:
        update_id: str
        request_id: str | None

    log = [Update("u1", "r1")]
    monkeypatch.setattr(subject, "updates", lambda folder: list(log))
    monkeypatch.setattr(
        subject, "flow_results", lambda folder, request_id: [FlowResult("u", "t", request_id, "COMPLETED")]
    )
    updates = following(airflow, FakeClient())
    updates.begin()
    log += [Update("u2", "r2"), Update("u3", "r2"), Update("u4", None)]
    assert [result.flow for result in updates.next_update(FakeStep())] == ["r2", "u4"]


def test_the_password_is_made_once_and_private(airflow: AirflowServices):
    """The password is random, stays the same, and only its owner can read it."""
    first = airflow.password
    assert airflow.password == first
    assert len(first) >= 12
    (file,) = airflow.home.iterdir()
    assert file.stat().st_mode & 0o077 == 0
    assert first not in json.dumps(airflow.environment())


def test_services_are_on_loopback(airflow: AirflowServices):
    """The web server binds to loopback, and no service serves its logs to the network."""
    assert airflow.environment()["AIRFLOW__API__HOST"] == "127.0.0.1"
    assert all("--skip-serve-logs" in command for command in log_servers())


def log_servers() -> list[tuple[str, ...]]:
    """Return the commands of the services that would serve logs."""
    from headwater_demo.airflow_services import SERVICES

    return [SERVICES["scheduler"], SERVICES["triggerer"]]
