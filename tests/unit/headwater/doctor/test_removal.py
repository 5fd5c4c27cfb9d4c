"""A flow or a table on a disk that is removed leaves, wherever a kill ends that, nothing that looks whole."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.killed_removals import Killed, killed_after
from tests.unit.headwater.doctor.test_dropping import call
from tests.unit.headwater.metrics.conftest import write_rows

from headwater.delta_log.table_history import table_exists
from headwater.doctor.removal import remove_flow
from headwater.doctor.snapshots import snapshots_of, take_snapshot


def each_kill(monkeypatch: pytest.MonkeyPatch, folder: Path, *, deepest_first: bool = False):
    """Remove a folder with a kill after each of its files, and at last without; what is left each time."""
    whole = folder.with_name("whole")
    shutil.copytree(folder, whole, symlinks=True)
    for number in itertools.count():
        with monkeypatch.context() as patch:
            patch.setattr(shutil, "rmtree", killed_after(number, deepest_first=deepest_first))
            try:
                remove_flow(folder)
            except Killed:
                yield number
            else:
                break
        shutil.rmtree(folder)
        shutil.copytree(whole, folder, symlinks=True)
    shutil.rmtree(whole)
    assert not folder.exists()


def test_a_table_that_is_dropped(done, capsys, monkeypatch):
    """What is left is no table of an earlier version and no checkpoint that has read less; the same drop removes the rest."""
    write_rows(done.table("silver"), 3)
    (done.checkpoint("silver").epoch_folder(0) / "offsets" / "1").write_text("v1\n{}\n{}")
    head = DeltaTable(done.table("silver")).version()
    kept_out = done.table("silver_quarantine")
    roots, whole = (done.project.storage, done.project.warehouse), done.project.folder.with_name("whole")
    for root in roots:
        shutil.copytree(root, whole / root.name)
    for number in itertools.count():
        with monkeypatch.context() as patch:
            patch.setattr(shutil, "rmtree", killed_after(number))
            try:
                call(done, capsys, "silver", "--yes")
                killed = False
            except Killed:
                killed = True
        if not killed:
            break
        assert not table_exists(done.table("silver")) or DeltaTable(done.table("silver")).version() == head
        checkpoint = done.checkpoint("silver")
        assert checkpoint.read_state() is not None or not any(checkpoint.folder.glob("*/*"))
        assert call(done, capsys, "silver", "--yes")[0] == 0
        assert not done.table("silver").exists()
        assert not checkpoint.folder.exists()
        assert not kept_out.exists()
        for root in roots:
            shutil.rmtree(root)
            shutil.copytree(whole / root.name, root)
    assert number > 5


def test_a_checkpoint(done, monkeypatch):
    """Its state outlives all of its positions: without it, a flow would begin where the rest of them says."""
    silver = done.checkpoint("silver")
    (silver.epoch_folder(0) / "offsets" / "1").write_text("v1\n{}\n{}")
    kills = 0
    for _ in each_kill(monkeypatch, silver.folder):
        assert silver.read_state() is not None or not any(silver.folder.glob("*/*"))
        kills += 1
    assert kills > 3


def test_copies(done, monkeypatch):
    """What is left of one is none that a restore would take."""
    silver = done.checkpoint("silver")
    state = done.project.state_folder
    taken = take_snapshot(state, silver, reason="asked for")
    files = sum(1 for path in taken.folder.rglob("*") if path.is_file())
    kills = 0
    for _ in each_kill(monkeypatch, taken.folder.parent, deepest_first=True):
        kills += 1
        for copy in snapshots_of(state, "silver", "silver"):
            assert sum(1 for path in copy.folder.rglob("*") if path.is_file()) == files
    assert kills > 3


def test_a_link_to_another_folder(tmp_path):
    """The link goes, and what it leads to stays."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "snapshot.json").write_text("{}")
    (tmp_path / "flow").mkdir()
    (tmp_path / "flow" / "link").symlink_to(tmp_path / "other")
    remove_flow(tmp_path / "flow")
    assert not (tmp_path / "flow").exists()
    assert (tmp_path / "other" / "snapshot.json").exists()
