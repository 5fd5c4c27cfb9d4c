"""The memory of processes: what is resident, and what a JVM's heap holds after a collection."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import psutil

from headwater.runtime.java import java_environment

_TOTAL = re.compile(r"^Total +\d+ +(\d+)", re.MULTILINE)


def resident(process: psutil.Process | None = None) -> float:
    """The resident memory of a process, of this one if None, in MB."""
    return float((process or psutil.Process()).memory_info().rss) / 2**20


def live_heap(java: int) -> float | None:
    """What is alive in the heap of a JVM after a full collection, in MB; None where it has ended, or where there is no jcmd."""
    # What comes between a collection and a second question would count as alive: the histogram collects, and counts what is left.
    return live_bytes(_jcmd(java, "GC.class_histogram"))


def live_bytes(histogram: str) -> float | None:
    """The sum of ``jcmd PID GC.class_histogram``, in MB; None where there is none."""
    total = _TOTAL.search(histogram)
    return int(total[1]) / 2**20 if total else None


def _jcmd(java: int, command: str) -> str:
    environment = java_environment()
    program = Path(environment.get("REAL_JAVA_HOME", environment["JAVA_HOME"])) / "bin" / "jcmd"
    if not program.exists():
        return ""
    done = subprocess.run(
        [program, str(java), command],
        capture_output=True, text=True, check=False, env={**os.environ, **environment},
    )  # fmt: skip
    return done.stdout if done.returncode == 0 else ""
