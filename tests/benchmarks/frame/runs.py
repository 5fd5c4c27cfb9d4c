"""One run of a contender: what it took, of this process with its JVM or of a program started for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from headwater.files.json_lines import lines_of

_MEASURE = Path(__file__).with_name("process_tree.py")
_LIMIT = 900


@dataclass(frozen=True)
class Run:
    """``wall`` seconds that somebody waits, and ``cpu`` seconds (user and system) of all its processes."""

    wall: float
    cpu: float


@dataclass
class Stopwatch:
    """Filled in when the block ends."""

    runs: list[Run] = field(default_factory=list)

    @property
    def run(self) -> Run:
        """The run that has ended."""
        return self.runs[-1]


@contextmanager
def stopwatch() -> Iterator[Stopwatch]:
    """Measure a block that runs in this process and its children, the JVM above all."""
    watch = Stopwatch()
    started, used = time.monotonic(), cpu_seconds()
    yield watch
    watch.runs.append(Run(time.monotonic() - started, cpu_seconds() - used))


def timed(work: Callable[[], object]) -> Run:
    """Measure a call that runs in this process and its children."""
    with stopwatch() as watch:
        work()
    return watch.run


def timed_process(command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> Run:
    """Measure a program with all that it starts; one that fails is an error."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        done = subprocess.run(
            [sys.executable, str(_MEASURE), str(answer), *map(str, command)],
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
            timeout=_LIMIT,
            check=False,
        )
        assert done.returncode == 0, "\n".join(lines_of(done.stdout + done.stderr)[-30:])
        return Run(**json.loads(answer.read_text()))


def cpu_seconds() -> float:
    """What this process, its living children and those that have ended have used so far."""
    total = 0.0
    me = psutil.Process()
    for process in [me, *me.children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total
