"""Lag behind a folder of files, listed as Spark lists it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from headwater.definitions.source import ANY_FILE_AGE
from headwater.errors import SourceUnreachable
from headwater.metrics.file_listing import list_files
from headwater.metrics.source_position import source_backlog


def names(path: object, **options: str) -> list[str]:
    return [Path(file.path).name for file in list_files(str(path), options)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of every kind that a listing meets."""
    for name in ("b.json", "a.json", "c.csv", "_SUCCESS", ".hidden.json", "d.json._COPYING_"):
        (tmp_path / name).write_text("{}")
    for below in ("day=1", "plain", "_temporary"):
        (tmp_path / below).mkdir()
        (tmp_path / below / f"{below}.json").write_text("{}")
    return tmp_path


def test_listing(folder):
    """Hidden names and plain folders are left out, partition folders are looked into."""
    assert names(folder) == ["a.json", "b.json", "c.csv", "day=1.json"]
    assert names(folder, recursiveFileLookup="true") == [
        "a.json",
        "b.json",
        "c.csv",
        "day=1.json",
        "plain.json",
    ]
    assert names(folder, pathGlobFilter="*.{json,txt}") == ["a.json", "b.json", "day=1.json"]
    assert names(folder / "*.csv") == ["c.csv"]
    assert names(folder / "{a,b}.json") == ["a.json", "b.json"]
    assert names(f"file://{folder}/a.json") == ["a.json"]


def test_what_is_not_there(tmp_path):
    """A folder that does not exist and a remote one are reported, a glob that matches nothing is empty."""
    assert list_files(str(tmp_path / "none*"), {}) == []
    for path in (str(tmp_path / "none"), "gs://bucket/data"):
        with pytest.raises(SourceUnreachable):
            list_files(path, {})


def test_unseen_files(pipeline):
    """Files that a committed batch took in are not counted, also when their names need encoding."""
    for name in ("a b.json", "ä.json"):
        pipeline.land(name)
    pipeline.take_in("a b.json", "ä.json")
    new = pipeline.land("c%.json", "12345")
    os.utime(new, (time.time() - 100, time.time() - 100))
    flow = pipeline.flow("bronze")
    backlog = source_backlog(flow, flow.sources[0], pipeline.checkpoint("bronze"), pipeline.project.warehouse)
    assert (backlog.files, backlog.bytes, backlog.moved) == (1, 5, True)
    assert backlog.seconds is not None
    assert 99 < backlog.seconds < 160


@pytest.mark.parametrize(("limit", "waits"), [(None, 1), (ANY_FILE_AGE, 1), ("9d", 1), ("7d", 0)])
def test_old_files(pipeline, limit: str | None, waits: int):
    """A file that is older than those that were read waits like others; one that Spark passes over for its age, where the read says
    so, is no backlog that never goes away.
    """
    pipeline.land("a.json")
    pipeline.take_in("a.json")
    old = pipeline.land("old.json")
    long_ago = time.time() - 8 * 24 * 3600
    os.utime(old, (long_ago, long_ago))
    flow = pipeline.flow("bronze")
    source = flow.sources[0].model_copy(
        update={"options": {**flow.sources[0].options, **({"maxFileAge": limit} if limit else {})}}
    )
    flow = flow.model_copy(update={"sources": (source,)})
    backlog = source_backlog(flow, source, pipeline.checkpoint("bronze"), pipeline.project.warehouse)
    assert (backlog.files, backlog.moved) == (waits, bool(waits))


def test_files_of_an_uncommitted_batch_count(pipeline):
    """Files in the source's log whose batch never committed are still to be read."""
    pipeline.land("a.json")
    pipeline.land("b.json")
    pipeline.take_in("a.json", batch=0)
    pipeline.take_in("b.json", batch=1)
    (pipeline.checkpoint("bronze").epoch_folder(0) / "commits" / "1").unlink()
    flow = pipeline.flow("bronze")
    backlog = source_backlog(flow, flow.sources[0], pipeline.checkpoint("bronze"), pipeline.project.warehouse)
    assert backlog.files == 1
