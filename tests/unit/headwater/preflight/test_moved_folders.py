"""A landing folder that lies elsewhere, or is named by another path, is noticed before Spark reads its files a second time."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.definitions.source import SourceKind
from headwater.metrics.file_listing import file_paths
from headwater.preflight.checks import CHECKS
from headwater.preflight.flow_start import FlowStart, StreamSource
from headwater.preflight.moved_folders import folder_was_moved


def start(root: Path, path: str, *, committed: bool = True, recorded: str | None = None) -> FlowStart:
    """A flow that has read two files of ``root/landing`` in a batch, and reads ``path`` now."""
    landing = root / "landing"
    checkpoint = FlowCheckpoint(root / "flow")
    epoch = checkpoint.epoch_folder(0)
    if not landing.exists():
        for name in ("offsets", "commits", "sources/0"):
            (epoch / name).mkdir(parents=True)
        landing.mkdir()
        lines = []
        for name in ("a b.json", "day=1/c.json"):
            file = landing / name
            file.parent.mkdir(exist_ok=True)
            file.write_text("{}")
            millis = file.stat().st_mtime_ns // 1_000_000
            lines.append(json.dumps({"path": file.as_uri(), "timestamp": millis, "batchId": 0}))
        (epoch / "sources/0/0").write_text("\n".join(["v1", *lines]))
        (epoch / "offsets/0").write_text('v1\n{}\n{"logOffset":0}')
        if committed:
            (epoch / "commits/0").write_text("v1\n{}")
    return reading(
        FlowStart("p", "f", "d", checkpoint, FlowState(), None, None), path, recorded or str(landing)
    )


def reading(flow: FlowStart, path: str, recorded: str) -> FlowStart:
    """The flow with another path; ``recorded``: that of the last run."""
    options = {"recursiveFileLookup": "true"}
    source = StreamSource(
        SourceKind.FILES, path, path=path, options=options, files=partial(file_paths, path, options)
    )
    state = FlowState(sources=({"kind": "files", "name": recorded, "path": recorded},))
    return replace(flow, sources=(source,), state=state)


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize(
    "spelling", ["{0}", "{0}/", "landing", "./landing", "{0}/../landing", "{0}//", "x/../landing", "{0}/*"]
)
def test_other_spellings_are_the_same_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spelling: str, committed: bool
):
    """Spark makes one path of them, so nothing is said."""
    monkeypatch.chdir(tmp_path)
    path = spelling.format(tmp_path / "landing")
    assert list(folder_was_moved(start(tmp_path, path, committed=committed))) == []


@pytest.mark.parametrize("how", ["moved", "copied", "linked", "linked above", "seen from above"])
def test_files_that_were_read_under_another_path(tmp_path: Path, how: str):
    """Their rows would come twice: the message says from where to where, and both ways on."""
    flow = start(tmp_path, str(tmp_path / "landing"))
    assert list(folder_was_moved(flow)) == []
    new = tmp_path / "elsewhere" / "landing"
    new.parent.mkdir()
    if how == "moved":
        (tmp_path / "landing").rename(new)
    elif how == "copied":
        shutil.copytree(tmp_path / "landing", new)
    elif how == "linked":
        new.symlink_to(tmp_path / "landing")
    elif how == "linked above":
        (tmp_path / "top").symlink_to(tmp_path)
        new = tmp_path / "top" / "landing"
    else:
        (new / "in").mkdir(parents=True)
        (tmp_path / "landing" / "a b.json").rename(new / "in" / "a b.json")
        os.link(new / "in" / "a b.json", tmp_path / "landing" / "a b.json")
    (damage,) = folder_was_moved(reading(flow, str(new), str(tmp_path / "landing")))
    assert damage.condition == "SOURCE_MOVED"
    assert damage.blocks
    assert f"below {tmp_path / 'landing'} lie there under new paths" in damage.error.what
    assert "--from-time TIME" in damage.error.remedy
    assert f"Let the source read {tmp_path / 'landing'} again" in damage.error.remedy
    assert str(new / "a b.json") in damage.evidence or str(new / "in" / "a b.json") in damage.evidence


def test_a_batch_that_was_planned_before(tmp_path: Path):
    """It names files of the old folder, also where the new one is empty; Spark would end in `Wrong basePath`."""
    flow = start(tmp_path, str(tmp_path / "landing"), committed=False)
    (tmp_path / "new").mkdir()
    (damage,) = folder_was_moved(reading(flow, str(tmp_path / "new"), str(tmp_path / "landing")))
    assert "batch 0, which is planned and not done, names 2 files" in damage.error.what


def test_another_folder_with_other_files(tmp_path: Path):
    """Files of the same names and other times are new ones: a source may be pointed to another folder."""
    flow = start(tmp_path, str(tmp_path / "landing"))
    (tmp_path / "new" / "day=1").mkdir(parents=True)
    for name in ("a b.json", "d.json", "day=1/c.json"):
        (tmp_path / "new" / name).write_text("{}")
        os.utime(tmp_path / "new" / name, (1_000_000_000, 1_000_000_000))
    assert list(folder_was_moved(reading(flow, str(tmp_path / "new"), str(tmp_path / "landing")))) == []
    assert list(folder_was_moved(reading(flow, str(tmp_path / "gone"), str(tmp_path / "landing")))) == []


def test_a_relative_path_in_another_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The same words name another folder then."""
    flow = start(tmp_path, str(tmp_path / "landing"))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "landing").rename(tmp_path / "elsewhere" / "landing")
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert len(list(folder_was_moved(reading(flow, "landing", "landing")))) == 1


def test_an_unchanged_path_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The list of all files that were ever read is not opened."""
    flow = start(tmp_path, str(tmp_path / "landing"))
    monkeypatch.setattr("headwater.preflight.moved_folders.files_seen", lambda *_: pytest.fail("opened"))
    assert list(folder_was_moved(flow)) == []


def test_it_is_one_of_the_checks_before_a_start():
    """And comes before the one that only sees that files are gone."""
    names = [check.__name__ for check in CHECKS]
    assert names.index("folder_was_moved") < names.index("planned_files_are_gone")
