"""The jar for local files: in the cache once, the same for every checkout, and made from the source beside it."""

from __future__ import annotations

import threading
import zipfile
from pathlib import Path

import pytest

from headwater.runtime import local_files as subject
from headwater.runtime import submit
from headwater.runtime.local_files import SETTINGS, local_files_jar
from headwater.runtime.submit import driver_class_path, submit_conf


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and no jars but ours."""
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(submit, "ensure_jars", lambda _: ())
    return tmp_path / "cache"


def test_it_is_put_into_the_cache_once():
    """Whole, by whoever comes first; the same time of change everywhere, by which archives of classes go."""
    seen: list[Path | None] = []
    threads = [threading.Thread(target=lambda: seen.append(local_files_jar())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (jar,) = set(seen)
    assert jar is not None
    assert jar.read_bytes() == subject.PACKAGED.read_bytes()
    assert jar.stat().st_mtime == 1_700_000_000
    assert [path.name for path in jar.parent.iterdir()] == [jar.name]


def test_drivers_of_this_machine_get_it():
    """On the class path, with the settings that name its classes; a pipeline's own setting wins, and a cluster has none of it."""
    conf = submit_conf({})
    assert str(local_files_jar()) in conf["spark.driver.extraClassPath"]
    assert SETTINGS.items() <= conf.items()
    theirs = {"spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem"}
    assert theirs.items() <= submit_conf(theirs).items()
    elsewhere = submit_conf({}, local=False)
    assert not SETTINGS.keys() & elsewhere.keys()


def test_without_a_cache_hadoops_own_are_used(cache: Path):
    """Where nothing can be written, nothing names classes that are not there."""
    cache.write_text("a file")
    assert local_files_jar() is None
    assert not SETTINGS.keys() & submit_conf({}).keys()
    assert "local-files" not in driver_class_path()


def test_it_has_what_the_settings_name():
    """Each class that is named is in the jar."""
    with zipfile.ZipFile(subject.PACKAGED) as jar:
        names = set(jar.namelist())
    for name in SETTINGS.values():
        assert f"{name.replace('.', '/')}.class" in names
