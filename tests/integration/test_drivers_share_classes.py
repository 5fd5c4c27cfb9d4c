"""Drivers map an archive of classes; one that is missing, damaged or made for something else costs time and nothing else."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.pipeline_case import PipelineCase

import headwater
from headwater.runtime import class_list, class_sharing
from headwater.runtime import shared_classes as making
from headwater.runtime.cache import cache_root
from headwater.runtime.class_archive import ClassArchive
from headwater.runtime.class_sharing import SETTING, class_archive
from headwater.runtime.jars import ensure_jars
from headwater.runtime.java import java_environment
from headwater.runtime.shared_classes import make_archive
from headwater.runtime.submit import driver_class_path

SOURCE = """
@dp.table
def numbers():
    return spark.readStream.schema("id INT").json(LANDING)
"""
# The first of the list: enough to see that they are shared, and archived in seconds.
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
    spark = [line for line in lines if line.startswith("org/apache/spark/")][:CLASSES]
    few = folder / "few.gz"
    few.write_bytes(gzip.compress("\n".join([*lines[:CLASSES], *spark, ""]).encode()))
    with monkeypatch.context() as patched:
        for module in (class_list, class_sharing):
            patched.setattr(module, "CLASS_LIST", few)
        made = make_archive(class_path)
    assert made is not None
    made.file.rename(usual.file)
    usual.note()
    return usual


def shared_classes(log: Path) -> int:
    """How many of Spark's classes a JVM took from an archive."""
    return len(re.findall(r"org\.apache\.spark\.\S+ source: shared objects file", log.read_text()))


def update(case: PipelineCase, log: Path) -> subprocess.CompletedProcess[str]:
    """An update as everybody starts it; ``log``: the pipeline's own option, to see where classes come from."""
    case.write(
        "pipeline.yml",
        f"name: case\nschema: shop\nconfiguration: {{landing: {case.landing}}}\n"
        f"spark: {{spark.master: 'local[2]', spark.driver.extraJavaOptions: '-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xlog:class+load:file={log}'}}\n",
    )
    roots = [f"--storage={case.storage}", f"--warehouse={case.warehouse}"]
    ground = Path(headwater.__file__).resolve().parents[1]
    return subprocess.run(
        [sys.executable, "-m", "headwater", "run", str(case.folder), "--json", *roots],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ground), str(ground.with_name("jobs"))])},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def test_an_archive_is_made_and_used(class_path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A driver takes Spark's classes from it. Where Java does not take it, the update is the same, and nobody reads of it."""
    archive = make_small(class_path, tmp_path, monkeypatch)
    case = PipelineCase(tmp_path / "case", SOURCE)
    case.land([{"id": 1}])
    done = update(case, tmp_path / "shared.log")
    assert json.loads(done.stdout)["state"] == "COMPLETED", done.stderr
    assert shared_classes(tmp_path / "shared.log") > 300

    # Whole for us, and nothing that Java could map: its own check is the last one.
    archive.file.chmod(0o644)
    content = bytearray(archive.file.read_bytes())
    content[:4096] = os.urandom(4096)
    archive.file.write_bytes(content)
    archive.note()
    case.land([{"id": 2}])
    done = update(case, tmp_path / "alone.log")
    assert json.loads(done.stdout)["state"] == "COMPLETED", done.stderr
    assert shared_classes(tmp_path / "alone.log") == 0
    assert not re.search(r"(?i)\bcds\b|shared|archive|jsa", done.stdout + done.stderr)
    assert sorted(case.rows("numbers")) == [(1,), (2,)]

    # Another jar is another archive.
    jar = tmp_path / "other.jar"
    jar.write_bytes(Path(class_path.split(os.pathsep)[0]).read_bytes())
    rest = class_path.split(os.pathsep)[1:]
    assert archive_of(os.pathsep.join([str(jar), *rest])).file != archive.file


def test_the_java_from_pypi_makes_one(class_path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It has no archive of its own to build on, lacks a module, and makes one all the same that it accepts."""
    monkeypatch.setenv("HEADWATER_JAVA", "pypi")
    archive = make_small(class_path, tmp_path, monkeypatch)
    java, *options = making._driver_command(class_path)
    must = [f"-XX:SharedArchiveFile={archive.file}", "-Xshare:on"]
    answer = subprocess.run(
        [java, *must, *options, "-version"],
        env={**os.environ, **java_environment()},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
