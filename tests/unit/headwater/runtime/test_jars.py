"""Jars: fetched once, checked, published in one step, safe with several processes."""

import os
import shutil
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest

from headwater.errors import UsageError
from headwater.runtime import jars as subject
from headwater.runtime.conditions import JarChecksumMismatch
from headwater.runtime.ivy import Coordinate
from headwater.runtime.jar_lock import PinnedJar, pin, pinned_jars, sha256, verify
from headwater.runtime.jar_stamps import STAMPS
from headwater.runtime.jars import GROUPS, ensure_jars

CONTENT = b"not really a jar"


class FakeRepository:
    """Serves one content for every coordinate, and counts how often it was asked."""

    def __init__(self, content: bytes = CONTENT) -> None:
        self.content = content
        self.calls = 0

    def __call__(self, coordinates: Iterable[Coordinate], into: Path, ivy_cache: Path) -> None:
        self.calls += 1
        ivy_cache.mkdir(parents=True, exist_ok=True)
        for wanted in coordinates:
            folder = into / wanted.organisation / wanted.name / wanted.revision
            folder.mkdir(parents=True)
            (folder / f"{wanted.name}-{wanted.revision}.jar").write_bytes(self.content)


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeRepository:
    """An empty cache, two pinned jars, and a repository that has them."""
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path))
    sample = tmp_path / "sample"
    sample.write_bytes(CONTENT)
    pinned = tuple(pin("org.example", name, "1.0", sample) for name in ("one", "two"))
    monkeypatch.setattr(subject, "pinned_jars", lambda group: pinned)
    fake = FakeRepository()
    monkeypatch.setattr(subject, "retrieve", fake)
    return fake


def left_in_cache(cache: Path) -> set[str]:
    """Name what a fetch left, apart from lock files."""
    return {entry.name for entry in (cache / "jars").iterdir() if entry.suffix != ".lock"}


def test_they_are_fetched_once(repository: FakeRepository):
    """The second call takes them from the cache."""
    first = ensure_jars("spark")
    assert [jar.name for jar in first] == ["one-1.0.jar", "two-1.0.jar"]
    assert all(jar.read_bytes() == CONTENT for jar in first)
    assert ensure_jars("spark") == first
    assert repository.calls == 1


def test_another_content_is_refused(repository: FakeRepository, tmp_path: Path):
    """A jar with another checksum is named, and nothing of it stays in the cache."""
    repository.content = b"something else"
    with pytest.raises(JarChecksumMismatch, match=r"one-1\.0\.jar is not the pinned jar"):
        ensure_jars("spark")
    assert left_in_cache(tmp_path) == set()
    repository.content = CONTENT
    assert len(ensure_jars("spark")) == 2


def test_a_lost_file_is_fetched_again(repository: FakeRepository):
    """A cache that lost a file, or holds half of one, is filled again."""
    one, two = ensure_jars("spark")
    one.unlink()
    two.write_bytes(CONTENT[:3])
    assert all(jar.read_bytes() == CONTENT for jar in ensure_jars("spark"))
    assert repository.calls == 2


def test_several_at_once_fetch_once(repository: FakeRepository):
    """Whoever comes second waits and finds them there."""
    fetched: list[list[Path]] = []
    threads = [threading.Thread(target=lambda: fetched.append(ensure_jars("spark"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(fetched) == 4
    assert repository.calls == 1


def test_the_lock_has_every_group():
    """Each group is pinned, with sizes and checksums, and holds what it asks for directly."""
    for group, wanted in GROUPS.items():
        pinned = pinned_jars(group)
        assert {(jar.organisation, jar.name, jar.revision) for jar in pinned} >= {
            (one.organisation, one.name, one.revision) for one in wanted
        }
        assert all(jar.size > 0 and len(jar.sha256) == 64 for jar in pinned)
        assert len({jar.file_name for jar in pinned}) == len(pinned)


def test_an_unknown_group_is_refused():
    """The error names the groups that there are."""
    with pytest.raises(UsageError) as caught:
        pinned_jars("hive")
    assert "kafka_broker" in caught.value.remedy


def test_a_missing_file_fails_the_check(tmp_path: Path):
    """A jar that did not arrive is a mismatch too."""
    with pytest.raises(JarChecksumMismatch, match="no such file"):
        verify(tmp_path, (PinnedJar("org.example", "one", "1.0", 3, "0" * 64),))


def test_the_checksum_is_that_of_the_content(tmp_path: Path):
    """The checksum is SHA-256, in hexadecimal."""
    file = tmp_path / "empty"
    file.write_bytes(b"")
    assert sha256(file).startswith("e3b0c44298fc1c14")


def test_a_file_of_the_same_size_is_noticed(repository: FakeRepository):
    """A cached jar whose content was changed is fetched again, also where size and time are as they were."""
    one, _ = ensure_jars("spark")
    before = one.stat()
    one.write_bytes(b"x" * len(CONTENT))
    os.utime(one, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert all(jar.read_bytes() == CONTENT for jar in ensure_jars("spark"))
    assert repository.calls == 2


def test_checksums_are_compared_when_a_file_has_changed_only(
    repository: FakeRepository, monkeypatch: pytest.MonkeyPatch
):
    """A start with files as they were computes none; a copied cache (other inodes) is compared once and not fetched."""
    folder = ensure_jars("spark")[0].parent
    summed: list[Path] = []

    def counted(file: Path) -> str:
        summed.append(file)
        return sha256(file)

    monkeypatch.setattr("headwater.runtime.jar_stamps.sha256", counted)
    ensure_jars("spark")
    assert not summed
    copy = folder.with_name("copy")
    shutil.copytree(folder, copy)
    shutil.rmtree(folder)
    copy.rename(folder)
    for expected in (2, 2):
        ensure_jars("spark")
        assert len(summed) == expected
    assert repository.calls == 1


def test_a_cache_that_cannot_be_written(repository: FakeRepository, monkeypatch: pytest.MonkeyPatch):
    """Checksums are compared at each start then, and nothing fails; a damaged stamp is none."""
    folder = ensure_jars("spark")[0].parent
    (folder / STAMPS).write_text("[")

    def read_only(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", read_only)
        assert len(ensure_jars("spark")) == 2
    assert len(ensure_jars("spark")) == 2
    assert repository.calls == 1
