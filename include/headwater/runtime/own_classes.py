"""The jar with Headwater's own Java classes: built from ``java/`` once for each Spark, committed and pinned.

``make own-jar`` builds it again, with a Java compiler and the Spark of the virtual environment.

Decision 0186, decision 0190.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
import zipfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from headwater.errors import UsageError
from headwater.runtime.cache import cache_root
from headwater.runtime.class_sharing import spark_home
from headwater.runtime.conditions import JarChecksumMismatch
from headwater.runtime.jar_lock import sha256
from headwater.runtime.jars import ensure_jars

PACKAGED = Path(__file__).with_name("headwater.jar")
PIN = PACKAGED.with_suffix(".jar.sha256")
LOG_STORE = "headwater.store.ConditionalPutLogStore"
CHECKPOINT_MANAGER = "headwater.store.ConditionalPutCheckpointFileManager"
# ``abfss://`` without TLS, for emulators on loopback: Hadoop's own class for that has another scheme.
PLAIN_AZURE = "headwater.store.PlainAzure"
# The format of a stream's write. Delta's own sink computes a table's whole state for each batch.
TABLE_SINK = "headwater.delta.TableSink"
KNOWN_TRANSACTIONS = "headwater.delta.KnownTransactions"
# Hadoop's classes for files start a process for each permission and each look whether something is a link.
LOCAL_FILES = {
    "spark.hadoop.fs.file.impl": "headwater.files.LocalFiles$Checked",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "headwater.files.LocalFiles$Context",
}
_SOURCES_ENTRY = "Headwater-Sources-SHA-256"
# The oldest Java that Spark runs on, and a date that is the same in every build.
_JAVA_RELEASE = "17"
_DATE = "2026-01-01T00:00:00Z"
# The same time in each cache: archives of classes go by the times of the jars.
_CHANGED_AT = 1_767_225_600


def own_jar() -> Path:
    """The jar that belongs to this version of Headwater, in the cache: the same file for every checkout and installation.

    Where the cache can't be written, the packaged file itself; only archives of classes need the other.

    Raises:
        JarChecksumMismatch: where the packaged file is not the pinned one.
    """
    pinned = PIN.read_text(encoding="ascii").strip()
    checksum = sha256(PACKAGED) if PACKAGED.is_file() else "no such file"
    if checksum != pinned:
        raise JarChecksumMismatch(
            f"{PACKAGED.name} is not the pinned jar: SHA-256 is {checksum}, expected {pinned}",
            where=PACKAGED,
            remedy="install Headwater again; in a checkout, get the file back from version control",
        )
    jar = cache_root() / "jars" / f"headwater-{pinned[:16]}.jar"
    with suppress(OSError):
        if not jar.is_file():
            _put(jar)
        return jar
    return PACKAGED


def _put(jar: Path) -> None:
    """Write it beside its place, and rename: another process may do the same."""
    jar.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=jar.parent, prefix="headwater.") as temporary:
        fresh = Path(temporary) / jar.name
        fresh.write_bytes(PACKAGED.read_bytes())
        os.utime(fresh, (_CHANGED_AT, _CHANGED_AT))
        fresh.rename(jar)


def fingerprint_of_sources(sources: Iterable[Path]) -> str:
    """One checksum of all source files, by name and content."""
    digest = hashlib.sha256()
    for source in sorted(sources, key=lambda source: source.name):
        digest.update(f"{source.name} {sha256(source)}\n".encode())
    return digest.hexdigest()


def built_from(jar: Path = PACKAGED) -> str:
    """The checksum of the sources that a jar was built from, as its manifest says."""
    with zipfile.ZipFile(jar) as archive:
        manifest = archive.read("META-INF/MANIFEST.MF").decode()
    # A line of a manifest ends after 72 bytes; what goes on starts with a space.
    fields = dict(line.split(": ", 1) for line in manifest.replace("\r\n ", "").split("\r\n") if ": " in line)
    return fields[_SOURCES_ENTRY]


def build(sources: Iterable[Path], jar: Path = PACKAGED) -> None:
    """Compile the classes against the pinned Spark and Delta, and pack them.

    Raises:
        UsageError: where there is no compiler, or the sources do not fit this Spark.
        JarsUnavailable, JarChecksumMismatch: where Delta's jars could not be had.
    """
    files = sorted(sources)
    class_path = ":".join([f"{spark_home()}/jars/*", *map(str, ensure_jars("spark"))])
    with tempfile.TemporaryDirectory() as temporary:
        classes, manifest = Path(temporary) / "classes", Path(temporary) / "manifest"
        manifest.write_text(f"{_SOURCES_ENTRY}: {fingerprint_of_sources(files)}\n")
        options = [
            "--release",
            _JAVA_RELEASE,
            "-g:source,lines",
            "-proc:none",
            "-cp",
            class_path,
            "-d",
            str(classes),
        ]
        _run(["javac", *options, *map(str, files)])
        packed = ["--create", "--file", str(jar), "--manifest", str(manifest), "--date", _DATE]
        # Not what stands in for a class of Spark while others are compiled.
        _run(["jar", *packed, "-C", str(classes), "headwater"])


def _run(command: list[str]) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise UsageError(
            f"There is no {command[0]} here.", remedy=f"Install a JDK, {_JAVA_RELEASE} or newer."
        ) from error
    except subprocess.CalledProcessError as error:
        raise UsageError(f"{command[0]} failed:\n{error.stderr}") from error


def main() -> None:
    """Build the jar from the sources of this checkout, and pin it."""
    build(Path(__file__).parents[3].joinpath("java").rglob("*.java"))
    PIN.write_text(f"{sha256(PACKAGED)}\n", encoding="ascii")
    print(f"{PACKAGED}: {PACKAGED.stat().st_size} bytes")


if __name__ == "__main__":
    main()
