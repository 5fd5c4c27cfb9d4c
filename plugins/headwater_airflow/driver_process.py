"""The ``spark-submit`` process of a task: its own session, a report on its last line, a stop at a batch boundary."""

from __future__ import annotations

import functools
import json
import os
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

# The supervisor of a task kills it five seconds after it was asked to end.
_GRACE_SECONDS = 4.0


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
            found = json.loads(line)
        except json.JSONDecodeError:
            return False
        if not isinstance(found, dict) or not ("error" in found or "flows" in found):
            return False
        self.content = found
        return True


def attach(hook: Any, report: DriverReport, folder: Path) -> None:
    """Make the provider's hook start the driver as we need it.

    The driver gets its own session, because a task's whole process group is sent SIGTERM when it is stopped, and
    Spark's JVM would end at once under a running batch.
    """
    hook.submit = functools.partial(hook.submit, start_new_session=True, cwd=str(folder))
    log_lines = hook._process_spark_submit_log  # noqa: SLF001
    hook._process_spark_submit_log = lambda lines: log_lines(report.without_report(lines))  # noqa: SLF001


def exit_code(hook: Any) -> int | None:
    """What ``spark-submit`` ended with (in client mode, the driver's own code); None if it never ran or runs still."""
    process = getattr(hook, "_submit_sp", None)
    return None if process is None else process.poll()


def stop_gracefully(hook: Any) -> bool:
    """Ask the Python driver to stop after the batch in flight; whether it ended in time.

    The JVM must not get the signal: only its child, the Python process, knows when it is safe to stop.
    """
    process = getattr(hook, "_submit_sp", None)
    if process is None or process.poll() is not None:
        return True
    for child in _children(process.pid):
        try:
            os.kill(child, signal.SIGTERM)
        except ProcessLookupError:
            continue
    end = time.monotonic() + _GRACE_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            return True
        time.sleep(0.1)
    return False


def kill_session(hook: Any) -> None:
    """End everything of the driver at once: the JVM leads its session, and Python may outlive it."""
    process = getattr(hook, "_submit_sp", None)
    if process is not None and process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(text) for text in listing.read_text().split()]
        except OSError:
            continue
    return found
