"""A listing of files that others write, rename, remove and lock meanwhile."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from headwater.errors import SourceUnreachable
from headwater.metrics import file_listing
from headwater.metrics.file_listing import file_paths, list_files
from headwater.metrics.fingerprint import source_fingerprint
from headwater.metrics.lag import flow_lag
from headwater.updates.news import has_news

DEEP = {"recursiveFileLookup": "true"}


def names(path: Path) -> list[str]:
    return [Path(file.path).name for file in list_files(str(path), DEEP)]


@pytest.fixture
def locked(monkeypatch: pytest.MonkeyPatch):
    """Lock a path against listing and looking, as its rights would for a user other than root."""
    refused: set[str] = set()
    scan = os.scandir

    def scandir(path):
        if str(path) in refused:
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
    return refused.add


def test_what_vanishes_between_two_looks_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A file that was renamed and a folder that was removed after their names were read are not an error, and not listed."""
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "a.json").write_text("{}")
    (tmp_path / "b.tmp").write_text("{}")
    (tmp_path / "c.json").write_text("{}")

    def hidden(name: str) -> bool:
        if name == "b.tmp":
            (tmp_path / name).rename(tmp_path / "b.json")
        if name == "below":
            (tmp_path / name / "a.json").unlink()
            (tmp_path / name).rmdir()
        return False

    monkeypatch.setattr(file_listing, "_hidden", hidden)
    assert names(tmp_path) == ["c.json"]


def test_a_writer_that_renames(tmp_path: Path):
    """Over hundreds of looks beside a writer that makes x.tmp and renames it, none fails and whole files are all there."""
    (tmp_path / "always.json").write_text("{}")
    ends = threading.Event()

    def write() -> None:
        number = 0
        while not ends.is_set():
            number += 1
            making = tmp_path / f"{number % 50}.tmp"
            making.write_text("{}")
            making.rename(tmp_path / f"{number % 50}.json")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(400):
            assert "always.json" in names(tmp_path)
    finally:
        ends.set()
        writer.join()


def test_links(tmp_path: Path):
    """A link that leads nowhere is left out, as Spark does; one that leads to itself can't be read and is named."""
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "nowhere.json").symlink_to(tmp_path / "gone.json")
    (tmp_path / "there.json").symlink_to(tmp_path / "a.json")
    assert names(tmp_path) == ["a.json", "there.json"]
    (tmp_path / "round.json").symlink_to(tmp_path / "round.json")
    with pytest.raises(SourceUnreachable, match=r"round\.json can't be read"):
        names(tmp_path)


@pytest.mark.parametrize("pattern", ["", "/*/*.json", "/{below,other}/*"])
def test_a_locked_folder_is_named(tmp_path: Path, locked, pattern: str):
    """A folder that may not be listed is never taken for an empty one, behind a glob either."""
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "a.json").write_text("{}")
    assert list_files(f"{tmp_path}{pattern}", DEEP)
    locked(str(tmp_path / "below"))
    for look in (list_files, lambda path, options: list(file_paths(path, options))):
        with pytest.raises(SourceUnreachable, match=r"below can't be read: Permission denied"):
            look(f"{tmp_path}{pattern}", DEEP)


def test_a_locked_landing_folder_is_lag_that_is_not_known(done, locked):
    """Lag says why it is not known, and an update is started, as only Spark's own error tells more."""
    assert not has_news(done.project).moved
    locked(str(done.landing))
    lag = flow_lag(done.project, done.flow("bronze"))
    assert "Permission denied" in (lag.backlog.unknown or "")
    verdict = has_news(done.project)
    assert verdict.moved
    assert not verdict.unexpected
    assert "Permission denied" in verdict.reasons[0]


def test_names_that_are_no_utf8(tmp_path: Path, pipeline):
    """A file whose name is not UTF-8 has its part in the fingerprint of its folder."""
    source = next(source for source in pipeline.flow("bronze").sources)
    folder = source.model_copy(update={"path": str(tmp_path)})
    before = source_fingerprint(folder, tmp_path)
    (tmp_path / os.fsdecode(b"\xff.json")).write_text("{}")
    assert source_fingerprint(folder, tmp_path) not in (before, None)
