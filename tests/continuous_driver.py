"""A continuous update as a process of its own, to be watched, killed and stopped; or in this one, where nobody kills it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.pipeline_case import PipelineCase

import headwater


@dataclass
class ContinuousDriver:
    """What ``headwater run --continuous`` starts, alone in its process group. ``log``: its standard error."""

    process: subprocess.Popen[bytes]
    case: PipelineCase
    log: Path

    @classmethod
    def start(cls, case: PipelineCase, name: str) -> ContinuousDriver:
        """Start it, and do not wait."""
        log = case.root / f"{name}.log"
        with log.open("wb") as err, log.with_suffix(".out").open("wb") as out:
            process = subprocess.Popen(
                _command(case, "run", "--continuous"),
                stdout=out, stderr=err, env=_environment(), start_new_session=True,
            )  # fmt: skip
        return cls(process, case, log)

    def wait_for(self, holds: Callable[[], bool], what: str, seconds: float = 90) -> None:
        """Return when it holds; the process must not end before."""
        ends = time.monotonic() + seconds
        while not holds():
            assert self.process.poll() is None, self.log.read_text()[-4000:]
            assert time.monotonic() < ends, f"{what}: not within {seconds} s\n{self.log.read_text()[-4000:]}"
            time.sleep(0.4)  # whoever looks takes a part of the cores

    def kill(self) -> None:
        """End it, with its JVM, at once and without a word."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(30)

    def stop(self) -> tuple[int, dict[str, Any]]:
        """Stop it as a person does; its exit code, and its report."""
        assert _stop(self.case) == "STOPPED"
        code = self.process.wait(60)
        return code, json.loads(self.log.with_suffix(".out").read_text().strip().rpartition("\n")[2])

    def end(self) -> None:
        """Leave nothing behind, whatever happened."""
        if self.process.poll() is None:
            self.kill()


def run_until(case: PipelineCase, look: Callable[[], None]) -> tuple[int, dict[str, Any]]:
    """Run a continuous update in this process, and stop it as a person does when ``look``, which runs beside it, returns.

    Gives its exit code and report; raises what ``look`` raised.
    """
    failed: list[BaseException] = []
    over = threading.Event()

    def beside() -> None:
        try:
            look()
        except BaseException as error:
            failed.append(error)
        while _stop(case) != "STOPPED" and not over.wait(0.2):  # it may not have begun
            pass

    # To a process whose update has just ended, a signal says nothing.
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    thread = threading.Thread(target=beside)
    thread.start()
    try:
        ended = case.run("--continuous")
    finally:
        over.set()
        thread.join(100)
        signal.signal(signal.SIGTERM, before)
    if failed:
        raise failed[0]
    return ended


def _stop(case: PipelineCase) -> str:
    """What ``headwater stop`` says of it."""
    done = subprocess.run(
        _command(case, "stop"), env=_environment(), capture_output=True, text=True, timeout=150, check=False
    )
    assert done.returncode == 0, done.stderr
    state: str = json.loads(done.stdout)["state"]
    return state


def until(holds: Callable[[], bool], what: str, seconds: float = 90) -> None:
    """Return when it holds."""
    ends = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < ends, f"{what}: not within {seconds} s"
        time.sleep(0.3)  # as above


def _command(case: PipelineCase, verb: str, *more: str) -> list[str]:
    roots = [f"--storage={case.storage}", f"--warehouse={case.warehouse}", "--json"]
    return [sys.executable, "-m", "headwater", verb, str(case.folder), *more, *roots]


def _environment() -> dict[str, str]:
    ground = Path(headwater.__file__).resolve().parents[1]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ground, ground.with_name("jobs"))))}
