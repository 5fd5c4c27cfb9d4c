"""Starting, hearing and stopping a driver: real processes, in place of Spark's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.dags.airflow_home import CHECKOUT

from headwater_airflow.driver.process import Driver

# As under spark-submit: the parent stands for the JVM, and would die of the signal at once.
PARENT = "import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', sys.argv[1]]))"
POLITE = """
import signal, sys, time
def stop(*_):
    print("stopped at a batch boundary", flush=True); sys.exit(0)
signal.signal(signal.SIGTERM, stop)
print("ready", flush=True)
time.sleep(60)
"""
DEAF = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(60)
"""


class Hook:
    """What Driver needs of the provider's hook: it starts a process and reads its lines."""

    def __init__(self, script, on_start=None):
        self.script = script
        self.on_start = on_start
        self.lines = []
        self.ready = threading.Event()

    def submit(self, application, **kwargs):
        self.started_with = {"application": application, **kwargs}
        command = [sys.executable, "-c", PARENT, self.script]
        self._submit_sp = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **kwargs)
        if self.on_start:
            self.on_start()
        self._process_spark_submit_log(iter(self._submit_sp.stdout))
        self._submit_sp.wait()

    def _process_spark_submit_log(self, lines):
        for line in lines:
            self.lines.append(line)
            self.ready.set()


@pytest.fixture
def submit(tmp_path):
    """Submits a script as the task does, from a thread; gives hook, driver and thread."""
    running = []

    def start(script, **named):
        hook = Hook(script, **named)
        driver = Driver(hook, tmp_path)
        thread = threading.Thread(target=hook.submit, args=("job.py",))
        running.append((driver, thread))
        return hook, driver, thread

    yield start
    for driver, thread in running:
        driver.stop()
        if thread.ident:
            thread.join(10)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


def test_a_driver_is_asked_and_ends_in_its_own_time(submit):
    """Only the Python child gets the signal; the parent then ends by itself, with the child's code, and quickly."""
    hook, driver, thread = submit(POLITE)
    assert driver.exit_code is None
    thread.start()
    assert hook.ready.wait(10)
    begun = time.monotonic()
    driver.stop()
    assert time.monotonic() - begun < 3.5
    thread.join(10)
    assert hook.lines == ["ready\n", "stopped at a batch boundary\n"]
    assert driver.exit_code == 0


def test_a_driver_that_does_not_listen_is_killed_with_its_children(submit, monkeypatch):
    """After the grace time, nothing of the session is left: the pipe is closed by the last one that holds it."""
    monkeypatch.setattr("headwater_airflow.driver.process._GRACE_SECONDS", 0.3)
    hook, driver, thread = submit(DEAF)
    thread.start()
    assert hook.ready.wait(10)
    driver.stop()
    thread.join(5)
    assert not thread.is_alive()
    assert driver.exit_code == -9


def test_a_driver_that_was_stopped_before_it_began_is_not_started(submit):
    """A stop is a handler that returns: what follows it must not start a driver that nobody would end."""
    hook, driver, thread = submit(POLITE)
    driver.stop()
    thread.start()
    thread.join(5)
    assert driver.exit_code is None
    assert hook.lines == []


def test_a_driver_that_is_stopped_while_it_starts_is_ended(submit):
    """The stop comes when the process is there and its Python is not: there is nobody to ask, so it is killed."""
    hook, driver, thread = submit(POLITE)
    hook.on_start = driver.stop
    thread.start()
    thread.join(5)
    assert not thread.is_alive()
    assert "stopped at a batch boundary\n" not in hook.lines


def test_a_driver_ends_with_the_process_that_started_it(tmp_path):
    """A worker that is killed with SIGKILL leaves no driver, though that has a session of its own."""
    worker = """
import sys
from pathlib import Path
from headwater_airflow.driver.process import Driver
from tests.unit.headwater_airflow.driver.test_process import Hook
hook = Hook("import time; print('ready', flush=True); time.sleep(60)")
driver = Driver(hook, Path(sys.argv[1]))
hook._log = hook._process_spark_submit_log
def say(): print(hook._submit_sp.pid, flush=True)
hook.on_start = say
hook.submit("job.py")
"""
    paths = os.pathsep.join([str(CHECKOUT), str(CHECKOUT / "plugins")])
    process = subprocess.Popen(
        [sys.executable, "-c", worker, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    pid = int(process.stdout.readline())
    assert alive(pid)
    process.kill()
    process.wait(10)
    process.stdout.close()
    end = time.monotonic() + 5
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.05)
    assert not alive(pid)
    # What stands for Spark's Python lives on here; the real one ends with its JVM.
    os.killpg(pid, signal.SIGKILL)


def test_a_quiet_driver_ends_with_what_watches_its_task(tmp_path: Path):
    """The supervisor is killed with SIGKILL, and the task, which waits for a line of its driver, stops that as on any stop (decision 0228)."""
    supervisor = """
import os, signal, sys, time
from pathlib import Path
from headwater_airflow.driver.process import Driver, end_with_supervisor
from tests.unit.headwater_airflow.driver.test_process import Hook, POLITE
if os.fork():
    time.sleep(60)
hook = Hook(POLITE)
driver = Driver(hook, Path(sys.argv[1]))
signal.signal(signal.SIGTERM, lambda *_: driver.stop())
def listen(lines):
    print(next(iter(lines)), hook._submit_sp.pid, os.getpid(), flush=True)
    for line in lines:
        (Path(sys.argv[1]) / "last").write_text(line)
driver._log_lines = listen
end_with_supervisor()
hook.submit("job.py")
"""
    process = subprocess.Popen(
        [sys.executable, "-c", supervisor, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(CHECKOUT), str(CHECKOUT / "plugins")])},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    pids = [int(word) for word in process.stdout.readline().split()]
    assert all(map(alive, pids))
    process.kill()
    end = time.monotonic() + 5
    while any(map(alive, pids)) and time.monotonic() < end:
        time.sleep(0.05)
    left = [pid for pid in pids if alive(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    process.wait(10)
    process.stdout.close()
    assert not left
    assert (tmp_path / "last").read_text() == "stopped at a batch boundary\n"


def test_the_report_is_caught_and_the_rest_is_logged(tmp_path):
    """The last line of JSON is the report; other lines, JSON or not, pass through."""
    logged, started = [], {}
    hook = SimpleNamespace(
        submit=lambda application, **kwargs: started.update(kwargs, application=application),
        _process_spark_submit_log=lambda lines: logged.extend(lines),
    )
    driver = Driver(hook, tmp_path)
    hook.submit("job.py")
    hook._process_spark_submit_log(
        iter(['{"batch": 1}\n', "hello\n", "{no json\n", '{"state": "COMPLETED", "flows": []}\n'])
    )
    assert driver.report.content == {"state": "COMPLETED", "flows": []}
    assert logged == ['{"batch": 1}\n', "hello\n", "{no json\n"]
    assert (started["application"], started["start_new_session"]) == ("job.py", True)
    assert started["cwd"] == str(tmp_path)


LINGERING = """
import pathlib, sys, time
print("ready", flush=True)
time.sleep(0.3)
pathlib.Path("last_words").write_text("how it ended")
"""


def test_last_words_of_a_driver_whose_jvm_is_gone(tmp_path: Path):
    """The Python process may say how it ended before anybody writes that for it."""
    hook = Hook(LINGERING)
    driver = Driver(hook, tmp_path)
    thread = threading.Thread(target=hook.submit, args=("",))
    thread.start()
    assert hook.ready.wait(20)
    os.kill(hook._submit_sp.pid, signal.SIGKILL)
    hook._submit_sp.wait()
    driver.wait_for_last_words()
    assert (tmp_path / "last_words").read_text() == "how it ended"
    thread.join(20)
    assert not thread.is_alive()
