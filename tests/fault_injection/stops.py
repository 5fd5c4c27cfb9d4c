"""Points at which a driver of a test stands still until it is killed: seen by the files that Spark and Delta write."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyspark
from tests.pipeline_case import PipelineCase

from headwater.runtime import object_store
from headwater.runtime.jars import ensure_jars
from headwater.runtime.java import java_environment
from headwater.runtime.own_classes import own_jar

_SOURCE = Path(__file__).with_name("Stops.java")


def nothing(_case: PipelineCase) -> None:
    """What most stops do."""


@dataclass(frozen=True)
class Stop:
    """One cell of the matrix.

    ``point``: its number in the list of crash points; ``kind``: the kind of flow. The driver stands still when a file
    whose path matches ``pattern`` is about to get its name (``writing``), has it (``written``), or has it and half of its
    bytes (``torn``). ``arguments`` go to ``headwater run``; where there are none, only the tables that lead to ``kind`` are
    updated. ``alone``: only the Python process is killed. ``meanwhile``
    is done while the driver stands, ``afterwards`` when it has been killed. ``backfill``: the driver is that of a backfill, which
    comes after an update and has these arguments.
    """

    point: int
    kind: str
    moment: str
    pattern: str
    arguments: tuple[str, ...] = ()
    alone: bool = False
    meanwhile: Callable[[PipelineCase], None] = field(default=nothing, compare=False)
    afterwards: Callable[[PipelineCase], None] = field(default=nothing, compare=False)
    backfill: Callable[[PipelineCase], tuple[str, ...]] | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{self.point}/{self.kind}/{self.moment}{'/alone' if self.alone else ''}{'/reset' if self.arguments else ''}"


def tell(folder: Path, stops: Sequence[Stop]) -> None:
    """Tell a driver that looks into ``folder`` where to stand still."""
    text = "\n".join(f"{stop.moment} {stop.pattern}" for stop in stops)
    (folder / "stops.new").write_text(text)
    (folder / "stops.new").rename(folder / "stops")


def reached(folder: Path, stops: Sequence[Stop]) -> list[Stop]:
    """At which of them the driver stands."""
    return [stop for number, stop in enumerate(stops) if (folder / str(number)).exists()]


def stopping_settings(folder: Path) -> dict[str, str]:
    """The settings of Spark with which drivers look for stops; compiles what they need into ``folder``, see :func:`on_the_class_path`."""
    jars = [str(jar) for jar in ensure_jars("spark")]
    spark = sorted(str(jar) for jar in (Path(pyspark.__file__).parent / "jars").glob("*.jar"))
    # Spark brings a compiler along; a runtime without one is enough.
    compiler = [jar for jar in spark if Path(jar).name.startswith(("janino-", "commons-compiler-"))]
    environment = {**os.environ, **java_environment()}
    command = [
        str(Path(environment["JAVA_HOME"]) / "bin" / "java"),
        "-cp",
        os.pathsep.join(compiler),
        "org.codehaus.commons.compiler.samples.CompilerDemo",
        *("-d", str(folder)),
        *("-classpath", os.pathsep.join([*spark, *jars, str(own_jar())])),
        str(_SOURCE),
    ]
    folder.mkdir(parents=True)
    subprocess.run(command, env=environment, check=True)
    # Classes are shared (decision 0158) only where all of them come from jars.
    shutil.make_archive(str(folder), "zip", folder)
    return {
        "spark.sql.streaming.checkpointFileManagerClass": "faults.Stops$Checkpoints",
        "spark.delta.logStore.file.impl": "faults.Stops$Log",
    }


def stop_store_writers() -> None:
    """Have the drivers of this process look for stops where they write to a store: pipelines may not name other writers there."""
    object_store.LOG_STORE = "faults.Stops$StoredLog"
    object_store.CHECKPOINT_MANAGER = "faults.Stops$StoredCheckpoints"


def on_the_class_path(folder: Path) -> dict[str, str]:
    """What lets a driver find the classes compiled into ``folder``: at the end, so that it shares all others with any driver."""
    own = Path(f"{folder}.zip")
    return {"SPARK_DIST_CLASSPATH": str(own)} if own.exists() else {}
