"""Starting, hearing and stopping a driver: real processes, in place of Spark's."""

from __future__ import annotations

import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from headwater_airflow.driver_process import DriverReport, attach, exit_code, kill_session, stop_gracefully

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


@pytest.fixture
def driver():
    """Starts a driver as the hook does: in its own session, listening to its output."""
    started = []

    def start(script):
        process = subprocess.Popen(
            [sys.executable, "-c", PARENT, script], stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        started.append(process)
        assert process.stdout.readline() == "ready\n"
        return SimpleNamespace(_submit_sp=process)

    yield start
    for process in started:
        kill_session(SimpleNamespace(_submit_sp=process))
        process.stdout.close()
        process.wait(10)


def test_a_driver_is_asked_and_ends_in_its_own_time(driver):
    """Only the Python child gets the signal; the parent then ends by itself, with the child's code."""
    hook = driver(POLITE)
    assert exit_code(hook) is None
    assert stop_gracefully(hook)
    assert hook._submit_sp.stdout.read() == "stopped at a batch boundary\n"
    assert exit_code(hook) == 0


def test_a_driver_that_does_not_listen_is_killed_with_its_children(driver, monkeypatch):
    """After the grace time, nothing of the session is left."""
    monkeypatch.setattr("headwater_airflow.driver_process._GRACE_SECONDS", 0.3)
    hook = driver(DEAF)
    assert not stop_gracefully(hook)
    kill_session(hook)
    hook._submit_sp.wait(5)
    # The pipe closes only when the last process that holds it is gone.
    assert hook._submit_sp.stdout.read() == ""


def test_stopping_what_never_ran_or_has_ended_is_no_error():
    """A task can be killed before or after its driver ran."""
    assert stop_gracefully(SimpleNamespace())
    assert exit_code(SimpleNamespace()) is None
    kill_session(SimpleNamespace())


def test_the_report_is_caught_and_the_rest_is_logged(tmp_path):
    """The last line of JSON is the report; other lines, JSON or not, pass through."""
    logged, started = [], {}
    hook = SimpleNamespace(
        submit=lambda application, **kwargs: started.update(kwargs, application=application),
        _process_spark_submit_log=lambda lines: logged.extend(lines),
    )
    report = DriverReport()
    attach(hook, report, tmp_path)
    hook.submit("job.py")
    hook._process_spark_submit_log(
        iter(['{"batch": 1}\n', "hello\n", "{no json\n", '{"state": "COMPLETED", "flows": []}\n'])
    )
    assert report.content == {"state": "COMPLETED", "flows": []}
    assert logged == ['{"batch": 1}\n', "hello\n", "{no json\n"]
    assert started == {"application": "job.py", "start_new_session": True, "cwd": str(tmp_path)}


def test_a_stop_is_quick(driver):
    """Well under the five seconds after which the supervisor kills a task."""
    hook = driver(POLITE)
    begun = time.monotonic()
    stop_gracefully(hook)
    assert time.monotonic() - begun < 2
