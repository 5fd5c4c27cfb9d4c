"""The jar of Headwater's own classes: it is the pinned one, and it was built from the sources beside it."""

from __future__ import annotations

import threading
import zipfile
from pathlib import Path

import pytest

from headwater.runtime import own_classes as subject
from headwater.runtime import submit
from headwater.runtime.conditions import JarChecksumMismatch
from headwater.runtime.own_classes import (
    CHECKPOINT_MANAGER,
    KNOWN_TRANSACTIONS,
    LOCAL_FILES,
    LOG_STORE,
    PACKAGED,
    TABLE_SINK,
    built_from,
    fingerprint_of_sources,
    own_jar,
)
from headwater.runtime.submit import submit_conf

SOURCES = sorted(Path(__file__).parents[4].joinpath("java").rglob("*.java"))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and no jars but ours."""
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(submit, "ensure_jars", lambda _: ())
    return tmp_path / "cache"


def test_the_committed_jar_was_built_from_the_committed_sources():
    """A change of a source without `make own-jar` fails here."""
    assert SOURCES
    assert built_from() == fingerprint_of_sources(SOURCES)


def test_the_classes_that_settings_name_are_in_the_jar():
    """Spark and Delta look them up by name, when the first stream, checkpoint or commit is written."""
    with zipfile.ZipFile(PACKAGED) as archive:
        names = set(archive.namelist())
    assert {
        f"{name.replace('.', '/')}.class"
        for name in (LOG_STORE, CHECKPOINT_MANAGER, TABLE_SINK, KNOWN_TRANSACTIONS, *LOCAL_FILES.values())
    } <= names


def test_no_class_of_spark_is_in_the_jar():
    """What stands in for one while ours are compiled would be loaded in its place."""
    with zipfile.ZipFile(PACKAGED) as archive:
        assert {name.split("/")[0] for name in archive.namelist()} == {"META-INF", "headwater"}


def test_a_changed_source_has_another_fingerprint(tmp_path: Path):
    """So that the first test can fail."""
    copies = [tmp_path / source.name for source in SOURCES]
    for copy, source in zip(copies, SOURCES, strict=True):
        copy.write_bytes(source.read_bytes())
    assert fingerprint_of_sources(copies) == fingerprint_of_sources(SOURCES)
    copies[0].write_bytes(copies[0].read_bytes() + b"//")
    assert fingerprint_of_sources(copies) != fingerprint_of_sources(SOURCES)


def test_another_file_in_its_place_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What guards checkpoints is not loaded from just any file."""
    assert own_jar().read_bytes() == PACKAGED.read_bytes()
    other = tmp_path / PACKAGED.name
    other.write_bytes(PACKAGED.read_bytes() + b" ")
    monkeypatch.setattr(subject, "PACKAGED", other)
    with pytest.raises(JarChecksumMismatch):
        own_jar()
    other.unlink()
    with pytest.raises(JarChecksumMismatch, match="no such file"):
        own_jar()


def test_it_is_put_into_the_cache_once():
    """Whole, by whoever comes first; the same time of change everywhere, by which archives of classes go."""
    seen: list[Path] = []
    threads = [threading.Thread(target=lambda: seen.append(own_jar())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (jar,) = set(seen)
    assert jar.read_bytes() == PACKAGED.read_bytes()
    assert jar.stat().st_mtime == 1_767_225_600
    assert [path.name for path in jar.parent.iterdir()] == [jar.name]


def test_without_a_cache_the_packaged_file_serves(cache: Path):
    """Drivers need its classes, also where nothing can be written."""
    cache.write_text("a file")
    assert own_jar() == PACKAGED


def test_drivers_of_this_machine_get_files_without_processes():
    """The jar is on the class path, and settings name its classes; a pipeline's own setting wins, and a cluster has none of it."""
    conf = submit_conf({})
    assert str(own_jar()) in conf["spark.driver.extraClassPath"]
    assert LOCAL_FILES.items() <= conf.items()
    theirs = {"spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem"}
    assert theirs.items() <= submit_conf(theirs).items()
    elsewhere = submit_conf({}, local=False)
    assert not LOCAL_FILES.keys() & elsewhere.keys()
