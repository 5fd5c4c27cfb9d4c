"""The jar of Headwater's own classes: it is the pinned one, and it was built from the sources beside it."""

import zipfile
from pathlib import Path

import pytest

from headwater.runtime import store_classes as subject
from headwater.runtime.conditions import JarChecksumMismatch
from headwater.runtime.store_classes import (
    CHECKPOINT_MANAGER,
    LOG_STORE,
    STORE_JAR,
    built_from,
    fingerprint_of_sources,
    store_jar,
)

SOURCES = sorted(Path(__file__).parents[4].joinpath("java").rglob("*.java"))


def test_the_committed_jar_was_built_from_the_committed_sources():
    """A change of a source without `make store-jar` fails here."""
    assert SOURCES
    assert built_from() == fingerprint_of_sources(SOURCES)


def test_the_classes_that_settings_name_are_in_the_jar():
    """Spark and Delta look them up by name, when the first checkpoint or commit is written."""
    with zipfile.ZipFile(STORE_JAR) as archive:
        names = set(archive.namelist())
    assert {f"{name.replace('.', '/')}.class" for name in (LOG_STORE, CHECKPOINT_MANAGER)} <= names


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
    assert store_jar() == STORE_JAR
    other = tmp_path / STORE_JAR.name
    other.write_bytes(STORE_JAR.read_bytes() + b" ")
    monkeypatch.setattr(subject, "STORE_JAR", other)
    with pytest.raises(JarChecksumMismatch):
        store_jar()
    other.unlink()
    with pytest.raises(JarChecksumMismatch, match="no such file"):
        store_jar()
