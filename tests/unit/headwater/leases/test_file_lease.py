"""One holder at a time, also across processes, crashes and a removed file."""

from __future__ import annotations

import fcntl
import json
import logging
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from headwater.errors import LeaseLost, UpdateInProgress
from headwater.leases import file_lease
from headwater.leases.file_lease import is_locked, update_lease

HOLD = """
import sys, time
from pathlib import Path
from headwater.leases.file_lease import update_lease
with update_lease(Path(sys.argv[1]), "other"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_the_second_is_refused_and_told_of_the_first(tmp_path: Path):
    """The refusal names the holder; when it has ended the lease is free, and the token has grown."""
    assert not is_locked(tmp_path)
    with update_lease(tmp_path, "first") as first:
        first.check()
        assert is_locked(tmp_path)
        with pytest.raises(UpdateInProgress, match="first"), update_lease(tmp_path, "second"):
            pass
    assert not is_locked(tmp_path)
    with update_lease(tmp_path, "second") as second:
        assert second.token == first.token + 1
        second.check()


def test_a_killed_holder_leaves_it_free(tmp_path: Path):
    """Nothing has to be cleaned up, and no time has to pass."""
    other = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(UpdateInProgress, match="other"), update_lease(tmp_path, "mine"):
            pass
        other.send_signal(signal.SIGKILL)
        other.wait(10)
        with update_lease(tmp_path, "mine") as lease:
            lease.check()
    finally:
        other.kill()
        other.wait(10)
        assert other.stdout is not None
        other.stdout.close()


def test_who_waits_says_for_whom_once(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """The log has a line of the holder when the wait begins, not one each time somebody looks."""
    caplog.set_level(logging.INFO, "headwater.leases")
    with update_lease(tmp_path, "first"):
        with pytest.raises(UpdateInProgress), update_lease(tmp_path, "second", wait=timedelta(seconds=1.2)):
            pass
        with pytest.raises(UpdateInProgress), update_lease(tmp_path, "third"):
            pass
    assert ["first, process" in record.getMessage() for record in caplog.records] == [True]


def test_two_that_look_do_not_take_each_other_for_a_holder(tmp_path: Path):
    """To look takes nothing away: another one may look at the same moment."""
    with update_lease(tmp_path, "first"):
        pass
    with (tmp_path / "update.lease").open() as looking:
        fcntl.flock(looking, fcntl.LOCK_SH | fcntl.LOCK_NB)
        assert not is_locked(tmp_path)


@pytest.mark.parametrize("again", [False, True])
def test_a_removed_file_is_noticed(tmp_path: Path, again: bool):
    """Whoever held it by a file that is gone, or another one, may not write."""
    with update_lease(tmp_path, "first") as first:
        (tmp_path / "update.lease").unlink()
        if again:
            with update_lease(tmp_path, "second") as second:
                second.check()
                with pytest.raises(LeaseLost):
                    first.check()
        with pytest.raises(LeaseLost):
            first.check()


def test_a_lock_on_a_file_that_was_removed_meanwhile_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Where the file went between opening and locking it, the one that is there now is locked: two would hold two files."""
    lock, locked = file_lease._lock, []

    def late(stream, ends, path):
        lock(stream, ends, path)
        locked.append(path)
        if len(locked) == 1:
            path.unlink()

    monkeypatch.setattr(file_lease, "_lock", late)
    with update_lease(tmp_path, "first") as first:
        first.check()
        assert len(locked) == 2
        with pytest.raises(UpdateInProgress), update_lease(tmp_path, "second"):
            pass


def test_another_holders_name_in_the_file_is_noticed(tmp_path: Path):
    """Where locks don't work (some network file systems), another one may take the same file: its token tells the two apart."""
    with update_lease(tmp_path, "first") as first:
        file = tmp_path / "update.lease"
        own = file.read_text()
        file.write_text(json.dumps({**json.loads(own), "update_id": "second", "token": first.token + 1}))
        with pytest.raises(LeaseLost):
            first.check()
        file.write_text(own)
        first.check()


def test_a_holder_that_died_while_it_wrote(tmp_path: Path):
    """A lease file that holds half a text is no obstacle."""
    (tmp_path / "update.lease").write_text('{"upd')
    with update_lease(tmp_path, "mine") as lease:
        lease.check()
        assert json.loads((tmp_path / "update.lease").read_text())["update_id"] == "mine"


def test_a_lease_that_cant_be_read_is_not_called_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Nothing more is written either way; what is said and advised is what happened."""

    def failing(*_, **__):
        raise OSError(5, "Input/output error")

    with update_lease(tmp_path, "first") as lease:
        with monkeypatch.context() as patched:
            patched.setattr(Path, "read_text", failing)
            with pytest.raises(LeaseLost, match="Input/output error") as caught:
                lease.check()
            assert "removed" not in str(caught.value)
        lease.check()


@pytest.mark.parametrize("content", [b"\xff\xfe not text", b'{"token": "abc"}', b"[1]"])
def test_what_no_holder_wrote_keeps_nobody_out(tmp_path: Path, content: bytes):
    """The lock decides, and the text is only shown."""
    (tmp_path / "update.lease").write_bytes(content)
    with update_lease(tmp_path, "first") as first:
        first.check()
        assert first.token == 1
