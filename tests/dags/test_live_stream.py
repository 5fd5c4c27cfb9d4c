"""A long stream in a running Airflow: run after run by itself, stopped between two batches, never two at once."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from tests.dags.live_airflow import CANARY, PASSWORD, wait_for

pytestmark = pytest.mark.timeout(300)


class Stream:
    """The DAG `stream` and what its drivers have noted."""

    def __init__(self, airflow) -> None:
        self.airflow = airflow
        self.state = airflow.folder / "storage" / "pipelines" / "stream"
        self.state.mkdir(parents=True, exist_ok=True)

    def notes(self, *kinds: str) -> list[dict]:
        file = self.airflow.folder / "stream.jsonl"
        lines = file.read_text().splitlines() if file.exists() else []
        return [line for line in map(json.loads, lines) if line["what"] in kinds]

    def latest(self):
        return self.airflow.client.runs("stream")[0]

    def by_driver(self) -> dict[int, list[str]]:
        """What each driver noted last, in the order in which they began."""
        moments: dict[int, list[str]] = {}
        for line in self.notes("begun", "batch", "stopped", "ended"):
            moments.setdefault(line["process"], []).append(line["what"])
        return moments


@pytest.fixture(scope="module")
def stream(live_airflow):
    """The stream, running until the tests are over."""
    watched = Stream(live_airflow)
    live_airflow.client.pause("stream", paused=False)
    yield watched
    live_airflow.client.pause("stream", paused=True)
    (watched.state / "endless").unlink(missing_ok=True)
    # Airflow looks at the runs of a paused DAG once a minute; drivers are what others would meet.
    wait_for(lambda: not any(Path(f"/proc/{driver}").exists() for driver in watched.by_driver()), 90)


def test_run_follows_run_and_a_stop_comes_between_two_batches(stream):
    """A bounded run ends well; the next begins, is marked as failed, and stops after its batch; one more begins."""
    ended = wait_for(lambda: stream.notes("ended"), 120)[0]
    (stream.state / "endless").touch()
    started = wait_for(lambda: stream.notes("begun")[1:], 90)[0]
    assert 0 < started["at"] - ended["at"] < 60
    wait_for(lambda: [n for n in stream.notes("batch") if n["process"] == started["process"]])
    run = stream.latest()
    # While it runs, its task leads to the page of the pipeline and to its driver.
    path = f"/dags/stream/dagRuns/{run.run_id}/taskInstances/update/links"
    links = stream.airflow.client._request("GET", path)["extra_links"]
    assert links["Pipeline"].endswith("/dags/stream/plugin/pipeline")
    assert links["Spark UI"] == "http://127.0.0.1:4040"
    # The driver has the secret in its environment, as it must, and nobody has it on a command line.
    assert CANARY in Path(f"/proc/{started['process']}/environ").read_bytes().decode(errors="replace")
    assert [name for name, line in command_lines() if CANARY in line] == []
    stream.airflow.client.fail_run("stream", run.run_id)
    stopped = wait_for(lambda: stream.notes("stopped"))
    assert stopped[0]["process"] == started["process"]
    after = wait_for(lambda: stream.notes("begun")[2:], 90)
    # One writer at a time: what a driver noted lies between its beginning and its end.
    assert after[0]["at"] > stopped[0]["at"]
    assert all(moments[0] == "begun" for moments in stream.by_driver().values())


def command_lines():
    """Of every process, as everybody on the machine sees it."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield file.parent.name, file.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue


def test_a_secret_of_connection_and_environment_is_nowhere(stream):
    """Not in logs, the database (XComs, rendered fields, asset events), the event log, the page, nor in what the API answers."""
    wait_for(lambda: stream.notes("ended", "stopped"), 90)
    client, run = stream.airflow.client, stream.airflow.client.runs("stream")[-1]
    task = f"/dags/stream/dagRuns/{run.run_id}/taskInstances/update"
    for path in (task, f"{task}/xcomEntries", f"{task}/links", "/assets/events"):
        assert CANARY not in json.dumps(client._request("GET", path))
    files = [path for path in stream.airflow.folder.rglob("*") if path.is_file()]
    assert any(path.suffix == ".log" and "stream" in str(path) for path in files)
    secret = CANARY.encode()
    assert [str(path) for path in files if secret in path.read_bytes()] == []
    assert run.run_id in (database := stream.airflow.database())
    assert CANARY not in database
    assert secret.hex() not in database
    address, login = stream.airflow.services.address, {"username": "admin", "password": PASSWORD}
    token = httpx.post(f"{address}/auth/token", json=login).json()["access_token"]
    for page in ("pipelines/stream", "pipelines/stream/checkpoints", ""):
        answer = httpx.get(f"{address}/headwater/{page}", cookies={"_token": token})
        assert answer.status_code == 200
        assert CANARY not in answer.text


def test_a_killed_scheduler_never_makes_two_writers(stream):
    """After SIGKILL the old driver goes on or ends, another one waits for its lease, and the stream goes on."""
    (stream.state / "endless").touch()
    wait_for(lambda: len(stream.notes("begun")) > len(stream.notes("ended", "stopped")), 90)
    before = len(stream.notes("begun"))
    stream.airflow.kill("scheduler")
    stream.airflow.restart("scheduler")
    (stream.state / "endless").unlink()
    wait_for(lambda: len(stream.notes("begun")) > before + 1, 180)
    holder = None
    for line in stream.notes("begun", "batch", "ended", "stopped"):
        if line["what"] == "begun":
            holder = line["process"]
        assert line["process"] == holder
