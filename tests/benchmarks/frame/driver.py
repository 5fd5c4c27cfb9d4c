"""A program that keeps running, with all that it has started: watched, and ended as the kernel does when memory runs out."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import psutil
from tests.benchmarks.frame.programs import FLOORS

_PAUSE = 0.02
_LONGEST_START = 180.0


class Driver:
    """A driver in Python and its JVM. ``log``: takes what they print; nowhere if None."""

    def __init__(self, command: Sequence[str | Path], log: Path | None = None) -> None:
        self.command, self.log = list(map(str, command)), log
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and do not wait."""
        with (self.log or Path(os.devnull)).open("wb") as output:
            self.process = subprocess.Popen(
                self.command, env={**os.environ, **FLOORS}, stdout=output, stderr=subprocess.STDOUT
            )

    def kill(self) -> None:
        """End it and all that it has started with SIGKILL; nothing where it does not run."""
        if self.process is None:
            return
        for process in self.tree():
            with suppress(psutil.NoSuchProcess):  # helpers come and go
                process.kill()
        self.process.wait()

    def tree(self) -> list[psutil.Process]:
        """Its processes; none where it has ended."""
        assert self.process is not None
        try:
            driver = psutil.Process(self.process.pid)
            return [driver, *driver.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def cpu_seconds(self) -> float:
        """What its processes, and those of theirs that have ended, have used so far."""
        return sum(map(_cpu_seconds, self.tree()))

    def wait_until(
        self,
        holds: Callable[[], bool],
        what: str,
        *,
        pause: float = _PAUSE,
        longest: float = _LONGEST_START,
    ) -> None:
        """Return when it holds; an error where the program ends before, or after ``longest`` seconds.

        Args:
            holds: looked at again and again, with ``pause`` seconds between.
            what: is wrong as long as it does not hold, for the error: "no commit".

        """
        ends = time.monotonic() + longest
        while not holds():
            assert self.process is not None
            assert self.process.poll() is None, f"the driver ended by itself: {self._last_lines()}"
            assert time.monotonic() < ends, f"{what} in {longest:.0f} seconds: {self._last_lines()}"
            time.sleep(pause)

    def _last_lines(self) -> str:
        said = self.log.read_text(errors="replace")[-3000:] if self.log is not None else ""
        return f"{self.command[:6]}\n{said}"


def _cpu_seconds(process: psutil.Process) -> float:
    try:
        return float(sum(process.cpu_times()[:4]))
    except psutil.NoSuchProcess:
        return 0.0
