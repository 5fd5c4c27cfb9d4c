"""Makes the archive of classes that drivers share: Java loads a list of classes once, and writes them down. Spark is not started.

``python -m headwater.runtime.shared_classes`` makes it for drivers of this machine, if it is not there. With ``--record LIST ...``
it writes the packaged list of classes instead, from lists that the JVM wrote (``SPARK_SUBMIT_OPTS=-XX:DumpLoadedClassList=FILE``).

Decision 0158.
"""

from __future__ import annotations

import argparse
import atexit
import fcntl
import functools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path

import headwater
from headwater.errors import HeadwaterError
from headwater.runtime.class_archive import ClassArchive
from headwater.runtime.class_list import packaged_list, write_list
from headwater.runtime.class_sharing import class_archive, has_files, sharing_mode, spark_home
from headwater.runtime.java import java_environment
from headwater.runtime.submit import driver_class_path

KEPT = 3
_NEEDED_BYTES = 1_000_000_000
_TIMEOUT_SECONDS = 900
_RETRY_SECONDS = 24 * 3600
_ABANDONED_SECONDS = 3600


class ArchiveNotMade(Exception):
    """Java wrote no archive; the message says why. Nothing fails for it: drivers go on without one."""


def make_archive(extra_class_path: str) -> ClassArchive | None:
    """Make the archive for drivers with this class path, unless it is there; None where none can be, or another process makes it.

    Raises:
        ArchiveNotMade: where Java did not make it, or there is no room.
        OSError: where the cache can't be written.

    """
    archive = class_archive(extra_class_path)
    if archive is None or archive.is_whole():
        return archive
    archive.file.parent.mkdir(parents=True, exist_ok=True)
    with _alone(archive.file.with_name("making.lock")) as alone:
        if not alone:
            return None
        if archive.is_whole():
            return archive
        try:
            _make(archive, extra_class_path)
        except ArchiveNotMade as error:
            archive.refusal.write_text(f"{error}\n")
            raise
        archive.refusal.unlink(missing_ok=True)
        _make_room(archive)
    return archive


def make_after_exit(extra_class_path: str) -> None:
    """When this process ends, start one in the background that makes the archive, if it is not there and may be made."""
    if sharing_mode() == "auto":
        _at_exit(extra_class_path)


@functools.cache
def _at_exit(extra_class_path: str) -> None:
    atexit.register(_start_making, extra_class_path)


def _start_making(extra_class_path: str) -> None:
    with suppress(OSError, HeadwaterError):
        archive = class_archive(extra_class_path)
        if archive is None or archive.is_whole() or _was_refused(archive):
            return
        if not os.access(_existing(archive.file.parent), os.W_OK):
            return
        ground = str(Path(headwater.__file__).resolve().parents[1])
        paths = [ground, *filter(None, [os.environ.get("PYTHONPATH")])]
        # Beside the user's next command it must not be felt, nor end with the terminal or the task of this one.
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "headwater.runtime.shared_classes",
                "--background",
                "--class-path",
                extra_class_path,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )


def _was_refused(archive: ClassArchive) -> bool:
    try:
        return time.time() - archive.refusal.stat().st_mtime < _RETRY_SECONDS
    except FileNotFoundError:
        return False


def _existing(folder: Path) -> Path:
    return next(parent for parent in (folder, *folder.parents) if parent.exists())


@contextmanager
def _alone(lock_file: Path) -> Iterator[bool]:
    with lock_file.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def _make(archive: ClassArchive, extra_class_path: str) -> None:
    """Write beside the final place, and only then rename."""
    folder = archive.file.parent
    if shutil.disk_usage(folder).free < _NEEDED_BYTES:
        raise ArchiveNotMade(f"less than {_NEEDED_BYTES // 10**9} GB are free in {folder}")
    with tempfile.TemporaryDirectory(dir=folder, prefix="making.") as temporary:
        classes, fresh = Path(temporary) / "classes.list", Path(temporary) / archive.file.name
        classes.write_bytes(packaged_list())
        java, *rest = _driver_command(extra_class_path)
        # Objects on the heap are written by this collector alone; every other can read them.
        dump = [
            "-Xshare:dump",
            f"-XX:SharedClassListFile={classes}",
            f"-XX:SharedArchiveFile={fresh}",
            "-XX:+UseG1GC",
        ]
        answer = _ran([java, *dump, "-Xlog:disable", "-Xlog:all=error:stderr", *rest])
        if not fresh.is_file():
            raise ArchiveNotMade(f"Java made none: {(answer.stdout + answer.stderr).strip()[-500:]}")
        fresh.replace(archive.file)
    archive.note()


def _driver_command(extra_class_path: str) -> list[str]:
    """The command by which Spark's launcher starts a driver, up to the main class: its class path and options are the ones that count."""
    launcher = [
        str(Path(java_environment()["JAVA_HOME"]) / "bin" / "java"),
        *("-Xmx128m", "-cp", f"{spark_home()}/jars/*", "org.apache.spark.launcher.Main", "org.apache.spark.deploy.SparkSubmit"),
        *("--conf", f"spark.driver.extraClassPath={extra_class_path}", "pyspark-shell"),
    ]  # fmt: skip
    answer = _ran(launcher)
    words = [word.strip("\n") for word in answer.stdout.split("\0")]
    main = "org.apache.spark.deploy.SparkSubmit"
    if answer.returncode != 0 or main not in words or "-cp" not in words:
        raise ArchiveNotMade(
            f"Spark's launcher said no command: {(answer.stdout + answer.stderr).strip()[-500:]}"
        )
    at = words.index("-cp")
    # A driver's class path may go on after what is archived; a folder with files ends it.
    entries = takewhile(lambda entry: not has_files(Path(entry)), words[at + 1].split(os.pathsep))
    modules = [word for word in words[at + 2 : words.index(main)] if word.startswith("--")]
    options = ["-Xmx1g", "-XX:+IgnoreUnrecognizedVMOptions", *modules]
    return [words[at - 1], "-cp", os.pathsep.join(entries), *options]


def _ran(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        **java_environment(),
        "SPARK_HOME": str(spark_home()),
        "SPARK_SCALA_VERSION": "2.13",
    }
    # What somebody adds to every JVM is for programs that do something.
    for name in ("SPARK_SUBMIT_OPTS", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS"):
        environment.pop(name, None)
    try:
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise ArchiveNotMade(f"no end after {_TIMEOUT_SECONDS} seconds") from None


def _make_room(made: ClassArchive) -> None:
    """Keep the few archives that were used last, and nothing of tries that were given up."""
    folder = made.file.parent

    def last_used(file: Path) -> float:
        notes = file.with_suffix(".json")
        return notes.stat().st_mtime if notes.exists() else 0.0

    others = sorted((file for file in folder.glob("*.jsa") if file != made.file), key=last_used, reverse=True)
    for old in others[KEPT - 1 :]:
        ClassArchive(old, 0).remove()
    for left in (*folder.glob("making.*/"), *folder.glob("*.part"), *folder.glob("*.failed")):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _ABANDONED_SECONDS:
                shutil.rmtree(left) if left.is_dir() else left.unlink()


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the archive, or write the list; returns the exit code, 0 also where drivers have to go on without one."""
    parser = argparse.ArgumentParser(prog="python -m headwater.runtime.shared_classes", description=__doc__)
    parser.add_argument(
        "--record", nargs="+", type=Path, metavar="LIST", help="write the packaged list from these"
    )
    parser.add_argument("--class-path", help="for drivers with this spark.driver.extraClassPath")
    parser.add_argument("--background", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.record:
        write_list(options.record)
        return 0
    if options.background:
        os.nice(10)
    try:
        class_path = options.class_path or driver_class_path()
        archive = make_archive(class_path)
    except (ArchiveNotMade, OSError, HeadwaterError) as error:
        print(f"Drivers share no classes: {error}", file=sys.stderr)
        return 0
    print(
        f"classes: {archive.file}"
        if archive
        else "classes: not shared here, or being made by another process"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
