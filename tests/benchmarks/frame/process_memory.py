"""The memory of processes: what is resident, and what a JVM's heap holds after a collection."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import psutil

from headwater.runtime.java import java_environment

_USED = re.compile(r"\bused (\d+)K")


def resident(process: psutil.Process | None = None) -> float:
    """The resident memory of a process, of this one if None, in MB."""
    return float((process or psutil.Process()).memory_info().rss) / 2**20


def live_heap(java: int) -> float | None:
    """What a full collection leaves in the heap of a JVM, in MB; None where it has ended, or where there is no jcmd."""
    _jcmd(java, "GC.run")
    return heap_used(_jcmd(java, "GC.heap_info"))


def heap_used(answer: str) -> float | None:
    """The sum over the generations of what ``jcmd PID GC.heap_info`` says, in MB; None where it says nothing of a heap."""
    of_heap = re.split(r"Metaspace", answer, maxsplit=1)[0]
    sizes = [int(size) for size in _USED.findall(of_heap)]
    return sum(sizes) / 1024 if sizes else None


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
