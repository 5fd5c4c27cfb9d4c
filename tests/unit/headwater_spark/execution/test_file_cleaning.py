"""Which files of a folder are deleted or moved once they were read, and which stay. Objects: test_files_on_s3.py."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.headwater_spark.update_parts import context_of, dataset, run_of

from headwater.errors import SourceUnreachable
from headwater.metrics.file_history import IngestedFile
from headwater_spark.execution import file_cleaning as module
from headwater_spark.execution.file_cleaning import clean_read, clean_sources

NOW = datetime(2026, 1, 20, tzinfo=UTC)
WEEK = timedelta(days=7)


def read_of(folder: Path, move_to: Path | None = None, clean: str | None = None) -> Any:
    """A read that cleans its files after a week."""
    how = clean or ("delete" if move_to is None else "move")
    options = SimpleNamespace(clean=how, retention=WEEK, move_to=move_to, native={})
    return SimpleNamespace(path=str(folder), options=options)


def ingested(file: Path, *, ago: timedelta | None = WEEK, modified_ms: int = 1_000) -> IngestedFile:
    """A file that was committed so long ago; it was modified at second 1. None: no record of its batch is left."""
    return IngestedFile("f", 0, str(file), modified_ms, "ingested", 0, None if ago is None else NOW - ago)


def landed(folder: Path, *names: str, modified: float = 1.0) -> list[Path]:
    """Files in a folder."""
    files = [folder / name for name in names]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(file.name)
        os.utime(file, (modified, modified))
    return files


def test_files_that_are_old_enough(tmp_path: Path):
    """Those that were committed at least that long ago and not written since; what nobody has read stays."""
    at, young, unknown, again, _ = landed(tmp_path, "a", "b", "c", "d", "e")
    os.utime(again, ns=(1_001_000_000, 1_001_000_000))
    history = [
        ingested(at),
        ingested(young, ago=WEEK - timedelta(seconds=1)),
        ingested(unknown, ago=None),
        ingested(again),
    ]
    assert clean_read(read_of(tmp_path), history, now=NOW) == [str(at)]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["b", "c", "d", "e"]


def test_files_keep_their_folders_when_they_move(tmp_path: Path):
    """One that is there already under that name stays, and both are kept."""
    (file,) = landed(tmp_path / "in", "day/a.json")
    (other,) = landed(tmp_path / "done", "day/a.json")
    other.write_text("of before")
    assert clean_read(read_of(tmp_path / "in", tmp_path / "done"), [ingested(file)], now=NOW) == [str(file)]
    assert not file.exists()
    texts = sorted((one.suffix, one.read_text()) for one in (tmp_path / "done" / "day").iterdir())
    assert texts == [(".json", "a.json"), (".json", "of before")]


def test_a_file_that_can_not_be_cleaned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It is tried again by the next update, and the others are cleaned."""
    one, other = landed(tmp_path, "a", "b")
    unlink = Path.unlink

    def refused(path: Path, **more: Any) -> None:
        if path == one:
            raise PermissionError
        unlink(path, **more)

    monkeypatch.setattr(Path, "unlink", refused)
    assert clean_read(read_of(tmp_path), [ingested(one), ingested(other)], now=NOW) == [str(other)]


def test_a_folder_that_is_gone(tmp_path: Path):
    """On a disk that is an error: nobody removes a folder by cleaning its files."""
    with pytest.raises(SourceUnreachable):
        clean_read(read_of(tmp_path / "gone"), [], now=NOW)


@pytest.mark.parametrize(
    ("clean", "said"), [("off", []), ("delete", ["orders: 1 ingested files were deleted"])]
)
def test_the_sources_of_a_flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clean: str, said: list[str]):
    """Each read that asks for it, by what the flow's live epoch has read."""
    (file,) = landed(tmp_path / "in", "a")
    run: Any = run_of(context_of(tmp_path))
    reads = {"orders": [read_of(tmp_path / "in", clean=clean)]}
    run.context.pipeline.evaluation.cloud = SimpleNamespace(reads_of=reads.__getitem__)
    asked: list[Any] = []
    monkeypatch.setattr(
        module,
        "ingested_files",
        lambda *given: asked.append(given) or [ingested(file, ago=timedelta(days=9999))],
    )
    monkeypatch.setattr(module, "datetime", SimpleNamespace(now=lambda _: NOW))
    clean_sources(run)
    assert run.context.said == said
    assert file.exists() is (clean == "off")
    assert asked == ([(tmp_path / "state", dataset().name, "orders")] if said else [])
