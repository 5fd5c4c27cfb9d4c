"""Fetches jars with the Ivy that pyspark brings, in a Java process of its own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from headwater.errors import UsageError
from headwater.runtime.conditions import JarsUnavailable
from headwater.runtime.java import java_environment
from headwater.runtime.trust_store import trust_options

# The folders carry the coordinates, so that a resolved set can be pinned from what was retrieved.
_PATTERN = "[organisation]/[module]/[revision]/[artifact]-[revision].[ext]"
_TIMEOUT_SECONDS = 1800


@dataclass(frozen=True)
class Coordinate:
    """What to ask for: a module at one revision, alone or with all that it needs at run time."""

    organisation: str
    name: str
    revision: str
    transitive: bool = False


def retrieve(coordinates: Iterable[Coordinate], into: Path, ivy_cache: Path) -> None:
    """Put the jars at ``into/<organisation>/<name>/<revision>/<name>-<revision>.jar``.

    ``HEADWATER_IVY_SETTINGS`` may name an Ivy settings file (mirrors, credentials).

    Args:
        coordinates: what to fetch.
        into: the folder to fill.
        ivy_cache: Ivy's own cache.

    Raises:
        JarsUnavailable: if Ivy did not find or could not reach something.

    """
    into.mkdir(parents=True, exist_ok=True)
    ivy_cache.mkdir(parents=True, exist_ok=True)
    request = into / "ivy.xml"
    request.write_text(_ivy_xml(coordinates))
    java = java_environment()
    trust = trust_options(into / "authorities.p12") if "REAL_JAVA_HOME" in java else []
    command = [f"{java['JAVA_HOME']}/bin/java", *trust, "-jar", str(_ivy_jar())]
    if settings := os.environ.get("HEADWATER_IVY_SETTINGS"):
        command += ["-settings", settings]
    command += ["-cache", str(ivy_cache), "-ivy", str(request), "-types", "jar", "bundle"]
    command += ["-retrieve", f"{into}/{_PATTERN}"]
    try:
        answer = subprocess.run(
            command,
            env={**os.environ, **java},
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise _unavailable(f"no end after {_TIMEOUT_SECONDS} seconds", settings) from error
    output = answer.stdout + answer.stderr
    if answer.returncode != 0 or "UNRESOLVED DEPENDENCIES" in output or "FAILED DOWNLOADS" in output:
        raise _unavailable(_what_went_wrong(output), settings)


def _unavailable(what: str, settings: str | None) -> JarsUnavailable:
    return JarsUnavailable(
        f"the pinned jars could not be fetched: {what}",
        where=f"Ivy settings: {settings or 'built in'}",
        remedy=(
            "check the network and try again (what has arrived is kept); behind a mirror, name an Ivy settings "
            "file in HEADWATER_IVY_SETTINGS; behind a proxy, set it in JAVA_TOOL_OPTIONS (-Dhttps.proxyHost=...)"
        ),
    )


def _what_went_wrong(output: str) -> str:
    complaints = [line.strip() for line in output.splitlines() if "not found" in line or "FAILED" in line]
    return "; ".join(complaints[:3]) or output.strip()[-300:]


def _ivy_jar() -> Path:
    # Importing pyspark takes a second and is not needed to find its files.
    spec = importlib.util.find_spec("pyspark")
    jars = sorted((Path(spec.origin).parent / "jars").glob("ivy-*.jar")) if spec and spec.origin else []
    if not jars:
        raise UsageError("pyspark is not installed here, and Ivy comes with it", remedy="run `make setup`")
    return jars[-1]


def _ivy_xml(coordinates: Iterable[Coordinate]) -> str:
    lines = [
        '<ivy-module version="2.0"><info organisation="headwater" module="jars"/>',
        '<configurations><conf name="default"/></configurations><dependencies>',
    ]
    for coordinate in coordinates:
        scope = "default->master,runtime" if coordinate.transitive else "default->master"
        lines.append(
            f"<dependency org={quoteattr(coordinate.organisation)} name={quoteattr(coordinate.name)}"
            f' rev={quoteattr(coordinate.revision)} conf="{scope}" transitive="{str(coordinate.transitive).lower()}"/>'
        )
    return "\n".join([*lines, "</dependencies></ivy-module>\n"])
