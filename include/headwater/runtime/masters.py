"""What depends on where Spark's executors run: in the driver's own process (``local[...]``), or on other machines.

Decision 0187.
"""

from __future__ import annotations

import sys

PYTHON = "spark.pyspark.python"
DRIVER_PYTHON = "spark.pyspark.driver.python"
# Spark's own default: the first of this name on the PATH of each worker.
_ON_PATH = "python3"


def is_local(master: str) -> bool:
    """Whether everything runs in the driver's process; so it does where nothing is named."""
    return not master or master.startswith("local")


def python_settings(master: str, python: str | None) -> dict[str, str]:
    """Which Python executors run, and the driver in client mode; empty where all run in this one.

    The path of this process's Python means nothing on another machine, so it is never handed to executors.

    Args:
        master: as Spark spells it.
        python: ``cluster.python`` of the pipeline.
    """
    if is_local(master):
        return {}
    return {PYTHON: python or _ON_PATH, DRIVER_PYTHON: sys.executable}
