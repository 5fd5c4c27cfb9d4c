"""A long stream in a running Airflow: run after run by itself, stopped between two batches, never two at once."""

from __future__ import annotations

import json
import os

import pytest
from tests.dags.live_airflow import wait_for

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
        found: dict[int, list[str]] = {}
        for line in self.notes("begun", "batch", "stopped", "ended"):
            found.setdefault(line["process"], []).append(line["what"])
        return found


@pytest.fixture(scope="module")
def stream(live_airflow):
    """The stream, running until the tests are over."""
    found = Stream(live_airflow)
    live_airflow.client.pause("stream", paused=False)
    yield found
    live_airflow.client.pause("stream", paused=True)
    (found.state / "endless").unlink(missing_ok=True)
    wait_for(lambda: all(run.is_finished for run in live_airflow.client.runs("stream")), 90)


def test_run_follows_run_and_a_stop_comes_between_two_batches(stream):
    """Two bounded runs end well, one behind the other; the next is marked as failed: it stops after its batch, and one more begins."""
    wait_for(lambda: len(stream.notes("ended")) >= 2, 120)
    (stream.state / "endless").touch()
    begun, ended = stream.notes("begun"), stream.notes("ended")
    gap = begun[1]["at"] - ended[0]["at"]
    assert 0 < gap < 60
    started = wait_for(lambda: next((n for n in stream.notes("begun")[2:]), None), 90)
    wait_for(lambda: [n for n in stream.notes("batch") if n["process"] == started["process"]])
    run = stream.latest()
    stream.airflow.client.fail_run("stream", run.run_id)
    stopped = wait_for(lambda: stream.notes("stopped"))
    assert stopped[0]["process"] == started["process"]
    after = wait_for(lambda: stream.notes("begun")[3:], 90)
    # One writer at a time: what a driver noted lies between its beginning and its end.
    assert after[0]["at"] > stopped[0]["at"]
    assert all(told[0] == "begun" for told in stream.by_driver().values())


@pytest.mark.skipif("HEADWATER_WHOLE" not in os.environ, reason="takes a minute: HEADWATER_WHOLE=1")
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
