"""The physical limit of reading: a plain copy of the same bytes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.benchmarks.frame.runs import Run, timed

LIMIT = "plain copy of the bytes"


def copy_of(source: Path, target: Path) -> Run:
    """Copy a folder to the disk, and wait until it is there; the copy is removed."""

    def copy() -> None:
        shutil.copytree(source, target)
        os.sync()

    run = timed(copy)
    shutil.rmtree(target)
    return run
