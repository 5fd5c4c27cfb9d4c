from __future__ import annotations

import threading
from pathlib import Path

import pytest

from headwater.checkpoints import pending_replacement
from headwater.checkpoints.pending_replacement import PendingReplacement, pending_replacements
from headwater.files import atomic_files

ONE = PendingReplacement("orders", "shop.orders@backfill-1", "day = '2026-01-02'", "{}", {"shop.orders@0": 7})
OTHER = PendingReplacement("clicks", "shop.clicks@backfill-2", "true", "{}", {})


def test_a_replacement_is_known_until_it_is_crossed_out(tmp_path: Path):
    """Also after the process that wrote it down has ended; of one table or of all."""
    assert list(pending_replacements(tmp_path)) == []
    for pending in (ONE, OTHER):
        with pending.written_down(tmp_path):
            assert pending in pending_replacements(tmp_path, pending.dataset)
    assert list(pending_replacements(tmp_path)) == [OTHER, ONE]
    assert list(pending_replacements(tmp_path, "orders")) == [ONE]
    for _ in range(2):
        ONE.cross_out(tmp_path)
    assert list(pending_replacements(tmp_path)) == [OTHER]


def test_only_who_has_ended_has_abandoned_it(tmp_path: Path):
    """The lock of the operating system tells, and ends with its holder."""
    with ONE.written_down(tmp_path):
        assert not ONE.is_abandoned(tmp_path)
    assert ONE.is_abandoned(tmp_path)
    ONE.cross_out(tmp_path)
    assert not ONE.is_abandoned(tmp_path)


def test_it_is_locked_before_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Whoever looks at the very moment in which it gets its name sees that somebody works on it."""
    sync = atomic_files.sync_folder
    seen: list[tuple[int, bool]] = []

    def look(folder: Path) -> None:
        seen.append((len(list(pending_replacements(tmp_path))), ONE.is_abandoned(tmp_path)))
        sync(folder)

    ONE._file(tmp_path).parent.mkdir(parents=True)
    for module in (atomic_files, pending_replacement):
        monkeypatch.setattr(module, "sync_folder", look)
    with ONE.written_down(tmp_path):
        assert seen == [(1, False)]


def test_nobody_crosses_out_what_is_being_worked_on(tmp_path: Path):
    """Beside one who ends all that is abandoned, as fast as it can, each entry lasts as long as its block."""
    ends = threading.Event()
    crossed: list[PendingReplacement] = []

    def cross_out() -> None:
        while not ends.is_set():
            for pending in pending_replacements(tmp_path):
                with pending.abandoned(tmp_path) as abandoned:
                    if abandoned:
                        pending.cross_out(tmp_path)
                        crossed.append(pending)

    others = [threading.Thread(target=cross_out) for _ in range(2)]
    for other in others:
        other.start()
    try:
        for _ in range(200):
            with ONE.written_down(tmp_path):
                assert ONE in pending_replacements(tmp_path)
    finally:
        ends.set()
        for other in others:
            other.join()
    assert crossed, "the other never came between: the test says nothing"


def test_a_block_that_never_began_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A disk that is full at the write leaves no file, not even a half one."""

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pending_replacement.os, "fsync", full)
    with pytest.raises(OSError, match="No space"), ONE.written_down(tmp_path):
        pass
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_an_entry_that_may_not_be_opened_is_no_ones_guess(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Missing rights are an error, not an entry that somebody works on for ever."""
    with ONE.written_down(tmp_path):
        pass

    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(pending_replacement.fcntl, "flock", denied)
    with pytest.raises(PermissionError):
        ONE.is_abandoned(tmp_path)
