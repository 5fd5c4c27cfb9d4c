"""Processes: all are ended, also those that hid, and nobody else's."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from headwater_demo.processes import Child, ProcessTable, start_child

# Ignores the polite signal.
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
# Starts a child in a session of its own and leaves it behind.
HIDER = (
    "import subprocess, sys; "
    "print(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], start_new_session=True).pid)"
)


def wait_for_text(log: Path) -> str:
    """Return what a process wrote, once it wrote something."""
    deadline = time.monotonic() + 20
    while not (text := log.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return text


@pytest.fixture
def stubborn(tmp_path: Path) -> Iterator[Child]:
    """A process that does not end when asked to."""
    child = start_child("stubborn", [sys.executable, "-c", STUBBORN], tmp_path / "log", env=os.environ)
    wait_for_text(child.log)
    yield child
    child.kill()


def test_a_stubborn_process_is_killed(stubborn: Child):
    """Who ignores the request to end is killed after the grace."""
    started = time.monotonic()
    stubborn.stop(grace_seconds=0.2)
    assert not stubborn.is_running
    assert time.monotonic() - started < 5


def test_what_a_process_writes_is_kept_private(stubborn: Child):
    """The tail of the log is what the process wrote, and other users can't read files that it makes."""
    assert stubborn.log_tail() == "up"
    assert stubborn.process.poll() is None


def test_files_of_children_are_private(tmp_path: Path):
    """A file that a child makes is readable by its owner only."""
    made = tmp_path / "made"
    child = start_child("maker", ["touch", made], tmp_path / "log", env=os.environ)
    assert child.process.wait(10) == 0
    assert made.stat().st_mode & 0o077 == 0


def test_grandchildren_that_hid_are_found(tmp_path: Path):
    """A process in another session whose parent is gone is ended with the stack."""
    with ProcessTable(tmp_path) as table:
        child = table.start("hider", [sys.executable, "-c", HIDER], tmp_path / "log", env={})
        assert child.process.wait(20) == 0
        hidden = psutil.Process(int(wait_for_text(child.log)))
        assert hidden.is_running()
    assert not hidden.is_running()


def test_leftovers_of_a_killed_run_are_swept(tmp_path: Path):
    """A later table of the same folder ends what an earlier one could not; another folder's is left alone."""
    (tmp_path / "ours").mkdir()
    command = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)"]
    left = ProcessTable(tmp_path / "ours").start("left", command, tmp_path / "log", env={})
    # In the middle of its start a process has no environment that could be read.
    wait_for_text(tmp_path / "log")
    assert ProcessTable(tmp_path / "others").sweep() == 0
    assert left.is_running
    assert ProcessTable(tmp_path / "ours").sweep() == 1
    assert not left.is_running


def test_nothing_starts_in_a_stack_that_was_ended(tmp_path: Path):
    """A thread that is late can't start a process nobody would end."""
    with ProcessTable(tmp_path) as table:
        pass
    with pytest.raises(RuntimeError, match="is being ended"):
        table.start("late", ["true"], tmp_path / "log", env={})


def test_sigterm_ends_the_children_too(tmp_path: Path):
    """A stack that is asked to end by SIGTERM ends its processes before it goes."""
    script = (
        "import sys, time; from pathlib import Path; from headwater_demo.processes import ProcessTable\n"
        "folder = Path(sys.argv[1])\n"
        "with ProcessTable(folder) as table:\n"
        "    print(table.start('one', ['sleep', '60'], folder / 'log', env={}).process.pid, flush=True)\n"
        "    time.sleep(60)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", script, tmp_path], env=environment, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.send_signal(signal.SIGTERM)
        assert parent.wait(20) == 128 + signal.SIGTERM
    assert not child.is_running()
