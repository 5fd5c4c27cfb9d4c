"""Run a command and write down what it took: wall seconds to its end, and the CPU seconds of it and of all it started.

python process_tree.py ANSWER COMMAND...

A driver in Python ends before its JVM, which nobody waits for then. As their reaper this process gets such orphans, and waits.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

_SET_CHILD_SUBREAPER = 36


def main(answer: str, command: list[str]) -> int:
    """Run it; the answer is written when the last of its processes has ended."""
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1)
    started = time.monotonic()
    code = subprocess.call(command)
    wall = time.monotonic() - started
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    Path(answer).write_text(json.dumps({"wall": wall, "cpu": used.ru_utime + used.ru_stime}))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
