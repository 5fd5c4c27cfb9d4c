"""A driver as a process of its own, to be killed: what `headwater run` starts, alone in its process group."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fault_injection.crash_matrix import TABLES_OF_KIND
from tests.fault_injection.stops import Stop
from tests.pipeline_case import PipelineCase

import headwater

_POLL_SECONDS = 0.005


@dataclass
class Driver:
    """One running update of a pipeline."""

    process: subprocess.Popen[bytes]
    output: Path
    log: Path
    stopped: Path

    @classmethod
    def start(
        cls, case: PipelineCase, *arguments: str, stop: Stop | None = None, name: str = "driver"
    ) -> Driver:
        """Start an update, which stands still at ``stop``; drivers side by side need names."""
        output, log, stopped = (case.root / f"{name}.{kind}" for kind in ("out", "log", "stopped"))
        stopped.unlink(missing_ok=True)
        if stop is not None and stop.backfill is not None:
            verb, arguments = "backfill", (*arguments, *stop.backfill(case))
        elif stop is not None:
            only = (f"--tables={TABLES_OF_KIND[stop.kind]}",)
            verb, arguments = "run", (*arguments, *(stop.arguments or only))
        else:
            verb = "run"
        command = [sys.executable, "-m", "headwater", verb, str(case.folder), "--json", *arguments]
        command += [f"--storage={case.storage}", f"--warehouse={case.warehouse}"]
        environment = {**os.environ, "PYTHONPATH": str(Path(headwater.__file__).resolve().parents[1])}
        if stop is not None:
            environment |= {
                "HEADWATER_STOP_AT": f"{stop.moment} {stop.pattern}",
                "HEADWATER_STOPPED": str(stopped),
            }
        with output.open("wb") as out, log.open("wb") as err:
            process = subprocess.Popen(
                command,
                stdout=out,
                stderr=err,
                stdin=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
            )
        return cls(process, output, log, stopped)

    def wait_for(self, met: Callable[[], bool], meanwhile: Callable[[], None]) -> bool:
        """Whether a moment came before the driver ended by itself; ``meanwhile`` is called all the time."""
        while self.process.poll() is None:
            if met():
                return True
            meanwhile()
            time.sleep(_POLL_SECONDS)
        return False

    def waits_for(self, file: Path) -> None:
        """Return when it has that file open; it must not end before."""
        folder = Path(f"/proc/{self.process.pid}/fd")
        while self.process.poll() is None:
            with suppress(OSError):
                if any(entry.resolve() == file.resolve() for entry in folder.iterdir()):
                    return
            time.sleep(_POLL_SECONDS)
        raise AssertionError(self.told())

    def kill(self, *, alone: bool) -> None:
        """End it with SIGKILL: its whole group, or the Python process ``alone`` (the JVM has to notice)."""
        with suppress(ProcessLookupError):
            os.kill(self.process.pid, signal.SIGKILL) if alone else self.kill_group()
        self.process.wait()

    def kill_group(self) -> None:
        """End every process of it that is left."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def all_ended(self, seconds: float) -> bool:
        """Whether no process of its group is left, after so many seconds at most."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            try:
                os.killpg(self.process.pid, 0)
            except ProcessLookupError:
                return True
            time.sleep(0.1)
        return False

    def answer(self) -> tuple[int, dict[str, Any]]:
        """The exit code and the last line, once it has ended."""
        code = self.process.wait(240)
        lines = self.output.read_text().splitlines()
        return code, json.loads(lines[-1]) if lines else {}

    def told(self) -> str:
        """What it said on standard error, the end of it."""
        return self.log.read_text(errors="replace")[-3000:]
