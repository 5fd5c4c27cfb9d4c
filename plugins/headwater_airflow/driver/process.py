"""The ``spark-submit`` process of a task: its own session, a report on its last line, a stop at a batch boundary."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from headwater.contract.driver_report import is_report

# The supervisor of a task kills it five seconds after it was asked to end.
_GRACE_SECONDS = 4.0
_LAST_WORDS_SECONDS = 10.0
_PR_SET_PDEATHSIG = 1


class DriverReport:
    """Catches the line of JSON that ``headwater run --json`` ends with; all others pass to the task's log."""

    def __init__(self) -> None:
        self.content: dict[str, Any] | None = None

    def without_report(self, lines: Iterable[str]) -> Iterator[str]:
        """The lines that are for people."""
        for line in lines:
            if not self._take(line):
                yield line

    def _take(self, line: str) -> bool:
        if not line.startswith("{"):
            return False
        try:
            content = json.loads(line)
        except json.JSONDecodeError:
            return False
        if not is_report(content):
            return False
        self.content = content
        return True


class Driver:
    """A driver that the provider's hook starts, made to behave as we need it.

    It gets its own session, because a task's whole process group is sent SIGTERM when it is stopped, and Spark's JVM
    would end at once under a running batch. So that it can't outlive its task all the same, the kernel ends it with
    the process that started it.

    Args:
        hook: a SparkSubmitHook.
        folder: the working directory.
        variables: for the process itself, over those of the task; unlike the hook's, they stand on no command line.

    """

    def __init__(self, hook: Any, folder: Path, variables: Mapping[str, str] = MappingProxyType({})) -> None:
        self.report = DriverReport()
        self._hook = hook
        self._folder = folder
        self._variables = variables
        self._stopped = False
        self._submit: Callable[..., Any] = hook.submit
        self._log_lines: Callable[[Iterable[str]], None] = hook._process_spark_submit_log  # noqa: SLF001
        # On Kubernetes the provider looks for the code in the log of a driver's pod; beside the task it is that of the process.
        hook._spark_exit_code = 0  # noqa: SLF001
        hook.submit = self._start
        hook._process_spark_submit_log = self._listen  # noqa: SLF001

    @property
    def exit_code(self) -> int | None:
        """What ``spark-submit`` ended with (in client mode, the driver's own code); None if it never ran."""
        return None if self._process is None else self._process.poll()

    def stop(self) -> None:
        """Ask the Python driver to stop after the batch in flight; end everything of it if it does not in time.

        The JVM must not get the signal: only its child, the Python process, knows when it is safe to stop. A driver
        that was not started yet never will be.
        """
        self._stopped = True
        if self._process is None or self._process.poll() is not None:
            return
        signalled = _terminate_children(self._process.pid)
        end = time.monotonic() + _GRACE_SECONDS
        while signalled and time.monotonic() < end:
            if self._process.poll() is not None:
                return
            time.sleep(0.1)
        _kill_session(self._process.pid)

    def wait_for_last_words(self) -> None:
        """Wait until nothing of a driver whose JVM has ended runs on; what does after a time is killed.

        The Python process outlives a killed JVM for a moment, in which it writes how its update ended.
        """
        if self._process is None:
            return
        end = time.monotonic() + _LAST_WORDS_SECONDS
        while time.monotonic() < end:
            try:
                os.killpg(self._process.pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.1)
        _kill_session(self._process.pid)

    @property
    def _process(self) -> Any:
        return getattr(self._hook, "_submit_sp", None)

    def _start(self, application: str = "") -> Any:
        # A signal only runs a handler: the code after it must check whether it should still go on.
        if self._stopped:
            return None
        dies_with = {"preexec_fn": _end_with_parent} if sys.platform == "linux" else {}
        environment = {"env": {**os.environ, **self._variables}} if self._variables else {}
        return self._submit(
            application, start_new_session=True, cwd=str(self._folder), **dies_with, **environment
        )

    def _listen(self, lines: Iterable[str]) -> None:
        if self._stopped:
            self.stop()
        self._log_lines(self.report.without_report(lines))


# Looked up before a fork: the child may not load anything.
_PRCTL = ctypes.CDLL(None, use_errno=True).prctl if sys.platform == "linux" else None


def end_with_supervisor() -> None:
    """Have the kernel ask this task to end (SIGTERM) when the process that watches it dies; only where there is Linux (decision 0228)."""
    if _PRCTL is not None:
        _end_with_parent()


def _end_with_parent() -> None:
    assert _PRCTL is not None
    _PRCTL(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _terminate_children(pid: int) -> bool:
    """Whether there was a child to signal."""
    any_child = False
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            for child in listing.read_text().split():
                os.kill(int(child), signal.SIGTERM)
                any_child = True
        except OSError:
            continue
    return any_child


def _kill_session(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
