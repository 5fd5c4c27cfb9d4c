"""Where a benchmark ran: hardware, versions and load, without a name or a path of the machine."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

from headwater.runtime.java import java_environment

_PACKAGES = ("pyspark", "delta-spark", "deltalake", "pyarrow", "apache-airflow", "databricks-labs-dqx")


def surroundings() -> dict[str, Any]:
    """The machine, and the versions of what is measured; a package that is not installed is left out."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "java": _java(),
        "versions": {name: found for name in _PACKAGES if (found := _version(name))},
        "headwater": _commit(),
    }


def load() -> float:
    """How many processes want a core, the mean of the last minute; above the number of cores the machine is busy."""
    return round(os.getloadavg()[0], 1)


def _processor() -> str:
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return found[1] if found else platform.machine()


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _java() -> str:
    found_java = java_environment()
    java = Path(found_java["JAVA_HOME"]) / "bin" / "java"
    done = subprocess.run(
        [str(java), "-version"], capture_output=True, text=True, check=True, env={**os.environ, **found_java}
    )
    told = done.stderr
    found = re.search(r'version "([^"]+)"', told)
    return found[1] if found else "unknown"


def _commit() -> str:
    """The commit, and whether the code is another: the files of results, which rows before this one wrote, do not count."""
    commit = _git("describe", "--always", "--exclude=*")
    changed = _git(
        "status", "--porcelain", "--untracked-files=no", "--", ":/", ":!results", ":!/docs/benchmarks.md"
    )
    return (commit + ("-dirty" if changed else "")) or "unknown"


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], capture_output=True, text=True, check=False, cwd=Path(__file__).parents[1]
    )
    return done.stdout.strip()
