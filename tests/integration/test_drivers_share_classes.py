"""Drivers map an archive of classes; one that is missing, damaged or made for something else costs time and nothing else."""

from __future__ import annotations

import gzip
import os
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headwater.runtime import class_list, class_sharing
from headwater.runtime import shared_classes as making
from headwater.runtime.cache import cache_root
from headwater.runtime.class_archive import ClassArchive
from headwater.runtime.class_sharing import SETTING, class_archive
from headwater.runtime.jars import ensure_jars
from headwater.runtime.java import java_environment
from headwater.runtime.shared_classes import make_archive
from headwater.runtime.submit import driver_class_path

# The first of the list: enough to be archived in seconds.
CLASSES = 1500


@pytest.fixture
def class_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """The usual one, in a cache of this test's own."""
    ensure_jars("spark")
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "jars").symlink_to(cache_root() / "jars")
    for name in (SETTING, "SPARK_SUBMIT_OPTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(SETTING, "use")
    monkeypatch.setenv("HEADWATER_CACHE", str(cache))
    return driver_class_path()


def archive_of(class_path: str) -> ClassArchive:
    archive = class_archive(class_path)
    assert archive is not None
    return archive


def make_small(class_path: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> ClassArchive:
    """An archive of few classes, under the name that drivers look for."""
    usual = archive_of(class_path)
    lines = class_list.packaged_list().decode().split("\n")
    few = folder / "few.gz"
    few.write_bytes(gzip.compress("\n".join([*lines[:CLASSES], ""]).encode()))
    with monkeypatch.context() as patched:
        for module in (class_list, class_sharing):
            patched.setattr(module, "CLASS_LIST", few)
        made = make_archive(class_path)
    assert made is not None
    made.file.rename(usual.file)
    usual.note()
    return usual


def test_the_session_of_these_tests_has_one(spark: SparkSession):
    """The JVM of a session, started as an update starts it, has the archive in its memory that `make` has made for it."""
    archive = archive_of(driver_class_path())
    assert archive.is_whole(), "run `make classes`"
    jvm = spark._jvm
    assert jvm is not None
    java = jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[operator]
    assert str(archive.file) in Path(f"/proc/{java}/maps").read_text()


def java_of(class_path: str) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run Java with a driver's class path and these options; it says its version."""
    java, *options = making._driver_command(class_path)

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [java, *more, *options, "-version"],
            env={**os.environ, **java_environment()}, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    return run


def test_the_java_from_pypi_makes_one(class_path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It has no archive of its own to build on, lacks a module, and makes one all the same that it accepts. Where Java does not take
    an archive that is whole for us, it goes on without, and nobody reads of it.
    """
    monkeypatch.setenv("HEADWATER_JAVA", "pypi")
    archive, java = make_small(class_path, tmp_path, monkeypatch), java_of(class_path)
    must = (f"-XX:SharedArchiveFile={archive.file}", "-Xshare:on")
    answer = java(*must)
    assert answer.returncode == 0, answer.stdout + answer.stderr

    # Whole for us, and nothing that Java could map: its own check is the last one.
    archive.file.chmod(0o644)
    content = bytearray(archive.file.read_bytes())
    content[:4096] = os.urandom(4096)
    archive.file.write_bytes(content)
    archive.note()
    assert archive.is_whole()
    assert java(*must).returncode != 0
    answer = java(*shlex.split(archive.options()))
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert not re.search(r"(?i)\bcds\b|shared|archive|jsa", answer.stdout + answer.stderr)
