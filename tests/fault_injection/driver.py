"""A driver as a process of its own, to be killed: what `headwater run` starts, alone in its process group."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from tests.fault_injection.crash_matrix import tables_of
from tests.fault_injection.stops import Stop, on_the_class_path, reached, tell
from tests.pipeline_case import PipelineCase

import headwater

_POLL_SECONDS = 0.005
# A flow that has nothing to do in an update does not come to its stop, and the others stand: enough for the slowest machine.
_PATIENCE_SECONDS = 40
# After a reset of everything an update reads all files of a soak again.
_LONGEST_UPDATE_SECONDS = 900


@dataclass
class Driver:
    """One running update of a pipeline, or one that waits to be told what to do."""

    process: subprocess.Popen[bytes]
    case: PipelineCase
    folder: Path
    stops: Sequence[Stop] = ()

    @classmethod
    def cold(cls, case: PipelineCase, name: str, *arguments: str) -> Driver:
        """The command as everybody types it."""
        command = ["-m", "headwater", "run", str(case.folder), "--json", *arguments]
        return cls._start(case, name, *command, f"--storage={case.storage}", f"--warehouse={case.warehouse}")

    @classmethod
    def warm(cls, case: PipelineCase, name: str) -> Driver:
        """A process that starts Spark now, and does what :meth:`go` says."""
        program = Path(__file__).with_name("warm_driver.py")
        return cls._start(case, name, str(program), str(case.folder), str(case.storage), str(case.warehouse))

    @classmethod
    def _start(cls, case: PipelineCase, name: str, *command: str) -> Driver:
        folder = case.root / "drivers" / name
        folder.mkdir(parents=True)
        ground = Path(headwater.__file__).resolve().parents[1]
        paths = (ground, ground.with_name("jobs"), Path(__file__).resolve().parents[2])
        environment = {
            **os.environ,
            **on_the_class_path(case.root / "classes"),
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "HEADWATER_STOPS": str(folder),
        }
        with (folder / "out").open("wb") as out, (folder / "log").open("wb") as err:
            process = subprocess.Popen(
                [sys.executable, *command],
                stdout=out,
                stderr=err,
                stdin=subprocess.PIPE,
                env=environment,
                start_new_session=True,
            )
        return cls(process, case, folder)

    def go(self, *arguments: str, stops: Sequence[Stop] = ()) -> None:
        """Tell a waiting driver to run an update (or the backfill of its stop), and where to stand still."""
        self.stops = stops
        tell(self.folder, stops)
        verb, words = "run", arguments
        if stops and stops[0].backfill is not None:
            verb, words = "backfill", (*arguments, *stops[0].backfill(self.case))
        elif stops:
            words = (*arguments, *(stops[0].arguments or (f"--tables={tables_of(stops)}",)))
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([verb, *words]).encode() + b"\n")
        self.process.stdin.flush()

    def reached(self) -> list[Stop]:
        """The stops at which it stands."""
        return reached(self.folder, self.stops)

    def stands(self) -> bool:
        """Whether it stands at all stops; or at some, and comes to no other within a long time."""
        ages = [
            time.time() - (self.folder / str(number)).stat().st_mtime
            for number in range(len(self.stops))
            if (self.folder / str(number)).exists()
        ]
        return len(ages) == len(self.stops) or (bool(ages) and min(ages) > _PATIENCE_SECONDS)

    def wait_for(self, met: Callable[[], bool], meanwhile: Callable[[], None]) -> bool:
        """Whether a moment came before the driver ended by itself; ``meanwhile`` is called all the time."""
        while self.process.poll() is None:
            if met():
                return True
            meanwhile()
            time.sleep(_POLL_SECONDS)
        return False

    def logs(self, text: str) -> None:
        """Return when it has logged that text; it must not end before."""
        assert self.wait_for(lambda: text in self.errors(), lambda: None), self.errors()

    def kill(self, *, alone: bool) -> None:
        """End it with SIGKILL: its whole group, or the Python process ``alone`` (the JVM has to notice)."""
        with suppress(ProcessLookupError):
            os.kill(self.process.pid, signal.SIGKILL) if alone else self.kill_group()
        self.process.wait()

    def kill_group(self) -> None:
        """End every process of it that is left."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def must_end(self, seconds: float) -> None:
        """Fail where a process of its group is left after so many seconds; the threads of a JVM are then in ``out``."""
        ends = time.monotonic() + seconds
        while left := self._left():
            if time.monotonic() > ends:
                break
            time.sleep(0.1)
        for one in left:
            if one.name() == "java":
                one.send_signal(signal.SIGQUIT)
        time.sleep(3 if left else 0)
        assert not left, f"outlived {self.folder} by {seconds} s: {left}"

    def _left(self) -> list[psutil.Process]:
        """The processes of its group that run. One that has ended stays in the group until somebody asks for its exit code."""
        try:
            os.killpg(self.process.pid, 0)
        except ProcessLookupError:
            return []
        return [
            one
            for one in psutil.process_iter(["status"])
            if one.info["status"] != psutil.STATUS_ZOMBIE and self._is_mine(one)
        ]

    def _is_mine(self, process: psutil.Process) -> bool:
        try:
            return os.getpgid(process.pid) == self.process.pid
        except ProcessLookupError:
            return False

    def answer(self) -> tuple[int, dict[str, Any]]:
        """The exit code and the last line, once it has ended."""
        code = self.process.wait(_LONGEST_UPDATE_SECONDS)
        lines = (self.folder / "out").read_text().splitlines()
        return code, json.loads(lines[-1]) if lines else {}

    def errors(self) -> str:
        """The end of its standard error."""
        return (self.folder / "log").read_text(errors="replace")[-3000:]
