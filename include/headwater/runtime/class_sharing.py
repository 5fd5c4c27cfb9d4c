"""Which archive of classes a driver gets, with which options, and when it gets none.

Decision 0158.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import logging
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwater.errors import UsageError
from headwater.runtime.cache import cache_root
from headwater.runtime.class_archive import ClassArchive
from headwater.runtime.class_list import CLASS_LIST
from headwater.runtime.conditions import JavaNotFound
from headwater.runtime.jar_lock import sha256
from headwater.runtime.java import java_environment

SETTING = "HEADWATER_CLASS_SHARING"
# Options with which somebody has arranged it otherwise; a second archive beside an AOT cache ends the JVM. So did, on Java 17,
# a flight recording from the start, which is shown each class as it is loaded, as agents are.
_THEIRS = re.compile(
    r"-Xshare|-XX:(Shared|AOT|[+-]AutoCreateShared|ArchiveClassesAtExit|DumpLoadedClassList)"
    r"|-XX:(StartFlightRecording|\+FlightRecorder)|-javaagent:|-agent(lib|path):"
)
_ENVIRONMENT = ("SPARK_SUBMIT_OPTS", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS")
_log = logging.getLogger("headwater.runtime")


@dataclass(frozen=True)
class Ingredients:
    """What an archive is made of. The JVM takes one only where all of it is the same, so each gets a name of its own.

    Attributes:
        java: the version, vendor and build that the runtime states about itself.
        class_path: each entry with its size and time of change in seconds; the JVM compares both, an image keeps no more.
        class_list: the checksum of the list of classes.

    """

    java: tuple[str, ...]
    class_path: tuple[tuple[str, int, int], ...]
    class_list: str

    @property
    def name(self) -> str:
        """A short name for exactly these."""
        plain = json.dumps([self.java, self.class_path, self.class_list])
        return hashlib.sha256(plain.encode()).hexdigest()[:16]


def sharing_options(extra_class_path: str, *option_texts: str) -> str:
    """The options that let a driver share classes; empty where there is no archive for it.

    Args:
        extra_class_path: what ``spark.driver.extraClassPath`` will be.
        option_texts: further options of the driver's JVM: where they arrange the sharing, nothing is added.

    Raises:
        UsageError: where ``HEADWATER_CLASS_SHARING`` is none of its values.

    """
    theirs = " ".join([*option_texts, *(os.environ.get(name, "") for name in _ENVIRONMENT)])
    if _THEIRS.search(theirs):
        return ""
    archive = class_archive(extra_class_path)
    if archive is None or not archive.is_whole():
        return ""
    archive.mark_used()
    return archive.options()


def sharing_mode() -> str:
    """``auto``: archives are used, and made where one is missing; ``use``: none is made by itself; ``off``.

    Raises:
        UsageError: where ``HEADWATER_CLASS_SHARING`` is something else.

    """
    mode = os.environ.get(SETTING) or "auto"
    if mode not in ("auto", "use", "off"):
        raise UsageError(
            f"{SETTING} is {mode!r}.", remedy=f"Set {SETTING} to auto, use or off, or leave it out."
        )
    return mode


def class_archive(extra_class_path: str) -> ClassArchive | None:
    """The archive of a driver with this class path on this machine, there or not; None where no JVM would take one.

    Raises:
        UsageError: where ``HEADWATER_CLASS_SHARING`` is none of its values.

    """
    if sharing_mode() == "off":
        return None
    try:
        java = java_environment()
        home = Path(java.get("REAL_JAVA_HOME") or java["JAVA_HOME"])
        spark = spark_home()
        entries = [entry for entry in extra_class_path.split(os.pathsep) if entry]
        if _jars_of(spark) not in entries:
            conf = _settings_folder(spark)
            if has_files(conf):
                _log.debug("Classes are not shared: %s stands before Spark's jars on the class path.", conf)
                return None
            entries.append(str(conf))
        jars = sorted(str(jar) for jar in (spark / "jars").glob("*.jar"))
        major, stated = _java(home)
        class_path = tuple(_entry(entry) for entry in [*entries, *jars])
        ingredients = Ingredients(stated, class_path, sha256(CLASS_LIST))
    except (OSError, JavaNotFound) as error:
        _log.debug("Classes are not shared: %s", error)
        return None
    return ClassArchive(cache_root() / "classes" / f"{ingredients.name}.jsa", major)


def spark_home() -> Path:
    """The Spark that is started: ``SPARK_HOME``, else the one of the package pyspark.

    Raises:
        FileNotFoundError: where there is neither.

    """
    if named := os.environ.get("SPARK_HOME"):
        return Path(named).resolve()
    # Importing pyspark takes a second and is not needed to find its files.
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("pyspark is not installed here")
    return Path(spec.origin).resolve().parent


def shareable(extra_class_path: str) -> str:
    """The class path with which drivers share classes: it has Spark's jars, too.

    Spark puts the folder of its settings before its jars, and Java shares no classes that stand behind a folder with files. Only
    the order changes: Spark adds the same jars again after the folder, and Java opens each once.
    """
    if sharing_mode() == "off":
        return extra_class_path
    # Which Spark is started must be known: two of them on one class path would be a mixture.
    if "SPARK_HOME" not in os.environ and not Path(sys.executable).with_name("spark-submit").exists():
        return extra_class_path
    try:
        return os.pathsep.join([extra_class_path, _jars_of(spark_home())])
    except FileNotFoundError:
        return extra_class_path


def has_files(folder: Path) -> bool:
    """Whether a folder is there, and not empty: what Java does not want on a class path that is shared."""
    return folder.is_dir() and any(folder.iterdir())


def _jars_of(spark: Path) -> str:
    return f"{spark}/jars/*"


def _settings_folder(spark: Path) -> Path:
    return Path(os.environ.get("SPARK_CONF_DIR") or spark / "conf")


def _entry(name: str) -> tuple[str, int, int]:
    if not name.endswith(".jar") and not os.path.isfile(name):  # noqa: PTH113 - as below
        return name, 0, 0
    state = os.stat(name)  # noqa: PTH116 - three hundred of them at each start
    return name, state.st_size, int(state.st_mtime)


def _java(home: Path) -> tuple[int, tuple[str, ...]]:
    """The version of a Java, and what tells it from every other: what it states, and its program's size and time of change."""
    release = (home / "release").read_text(encoding="utf-8")
    state = (home / "lib" / "server" / "libjvm.so").stat()
    version: Any = re.search(r'^JAVA_VERSION="(\d+)', release, re.MULTILINE)
    return int(version[1]) if version else 0, (
        release,
        str(home),
        str(state.st_size),
        str(int(state.st_mtime)),
    )
