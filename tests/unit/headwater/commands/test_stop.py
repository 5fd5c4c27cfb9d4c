"""`headwater stop` ends the driver that holds the pipeline's lease, and says why where it can't."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.unit.headwater.metrics.conftest import pipeline

from headwater.commands.stop import stop_update
from headwater.errors import UpdateInProgress
from headwater.leases.file_lease import update_lease
from headwater.leases.stop_request import is_stop_requested

__all__ = ["pipeline"]
HOLDER = """
import signal, sys, time
from pathlib import Path
from headwater.leases.file_lease import update_lease
from headwater.leases.stop_request import is_stop_requested
stopped = []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(1))
with update_lease(Path(sys.argv[1]), "u1"):
    print("held", flush=True)
    while not stopped or sys.argv[2] == "deaf":
        time.sleep(0.05)
"""


@pytest.fixture
def holders() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


def hold(holders: list[subprocess.Popen[str]], folder: Path, how: str = "hears") -> subprocess.Popen[str]:
    """A process that holds the lease, as a driver does."""
    ground = str(Path(sys.modules["headwater"].__file__ or "").resolve().parents[1])
    command = [sys.executable, "-c", HOLDER, str(folder), how]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": ground})
    holders.append(process)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def stop(pipeline, capsys, seconds: float = 20) -> str:
    assert stop_update(pipeline.project, timedelta(seconds=seconds), as_json=True) == 0
    return str(json.loads(capsys.readouterr().out)["state"])


def test_nothing_to_stop(pipeline, capsys):
    """Without an update it says so, also where one has left its name behind."""
    assert stop(pipeline, capsys) == "IDLE"
    with update_lease(pipeline.project.state_folder, "u0"):
        pass
    assert stop(pipeline, capsys) == "IDLE"


def test_a_driver_is_told_and_waited_for(pipeline, capsys, holders):
    """It has ended when the command does."""
    driver = hold(holders, pipeline.project.state_folder)
    assert stop(pipeline, capsys) == "STOPPED"
    assert driver.wait(5) == 0


def test_one_that_does_not_end_is_named(pipeline, holders):
    """The wait has an end."""
    hold(holders, pipeline.project.state_folder, "deaf")
    with pytest.raises(UpdateInProgress, match="u1 was told to stop"):
        stop_update(pipeline.project, timedelta(seconds=0.5), as_json=False)


@pytest.mark.parametrize(("field", "value"), [("host", "elsewhere"), ("process", None), ("process", 1)])
def test_one_of_another_machine_finds_a_request(pipeline, holders, field, value):
    """A process number means nothing elsewhere: nothing is signalled, and the request in storage names the update."""
    folder = pipeline.project.state_folder
    driver = hold(holders, folder)
    lease = folder / "update.lease"
    lease.write_text(json.dumps({**json.loads(lease.read_text()), field: value}))
    with pytest.raises(UpdateInProgress, match="u1 was told to stop"):
        stop_update(pipeline.project, timedelta(seconds=0.5), as_json=False)
    assert driver.poll() is None
    assert is_stop_requested(folder, "u1")
    assert not is_stop_requested(folder, "u2")
