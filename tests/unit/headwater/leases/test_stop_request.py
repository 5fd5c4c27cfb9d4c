"""A request to stop reaches the update that it names, once, and no other."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from headwater.leases.stop_request import (
    FILE_NAME,
    is_stop_requested,
    request_stop,
    stop_requests,
    withdraw_stop,
)
from headwater.storage.conditions import StoreRefused, StoreUnreachable


@pytest.mark.parametrize("who", ["u1", "r1"])
def test_the_named_update_is_stopped(tmp_path: Path, who: str):
    """By its id or by that of its request, within a look; what was heard is gone when the update has ended."""
    stopped = threading.Event()
    with stop_requests(tmp_path, ("u1", "r1"), stopped.set, every=0.01):
        assert not stopped.wait(0.05)
        request_stop(tmp_path, who)
        assert stopped.wait(10)
    assert not (tmp_path / FILE_NAME).exists()


def test_another_update_goes_on(tmp_path: Path):
    """A request for one that is over, or that never was, says nothing to the next."""
    stopped = threading.Event()
    request_stop(tmp_path, "u0")
    with stop_requests(tmp_path, ("u1", "r1"), stopped.set, every=0.01):
        assert not stopped.wait(0.2)
    assert is_stop_requested(tmp_path, "u0")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '"u1"', "null", '{"stop": null}', '{"stop": ["u1"]}', "\xff"]
)
def test_a_damaged_request_stops_nothing(tmp_path: Path, text: str):
    """Whatever lies there."""
    (tmp_path / FILE_NAME).write_bytes(text.encode("latin-1"))
    assert not is_stop_requested(tmp_path, "u1", None)


def test_nobody_is_asked_to_stop(tmp_path: Path):
    """Where there is no request, or one without a name, a driver without a name of its own goes on as well."""
    assert not is_stop_requested(tmp_path, "", None)
    request_stop(tmp_path, "")
    assert not is_stop_requested(tmp_path, "", None)


def test_nobody_looks_after_the_update(tmp_path: Path):
    """The thread ends with the block."""
    before = threading.active_count()
    with stop_requests(tmp_path, ("u1", "r1"), lambda: None, every=0.01):
        assert threading.active_count() == before + 1
    for thread in threading.enumerate():
        if thread.name == "stop-requests":
            thread.join(5)
    assert threading.active_count() == before


def test_a_request_is_withdrawn_before_the_next_attempt(tmp_path: Path):
    """It has the same request id; a request for another is left alone."""
    request_stop(tmp_path / "state", "r1")
    withdraw_stop(tmp_path / "state", "r2")
    assert is_stop_requested(tmp_path / "state", "r1")
    withdraw_stop(tmp_path / "state", "r1")
    assert not is_stop_requested(tmp_path / "state", "r1")


@pytest.mark.parametrize(
    "error", [StoreUnreachable("away"), StoreRefused("its token has expired"), OSError()]
)
def test_a_look_that_fails_is_not_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception):
    """The storage can be read again at a later look, which hears the request."""
    stopped, fails = threading.Event(), iter([error, error])
    read = Path.read_text

    def reads(file: Path, **more: str) -> str:
        for one in fails:
            raise one
        return read(file, **more)

    request_stop(tmp_path, "u1")
    monkeypatch.setattr(Path, "read_text", reads)
    with stop_requests(tmp_path, ("u1",), stopped.set, every=0.01):
        assert stopped.wait(10)
    assert next(fails, None) is None


@pytest.mark.parametrize("error", [StoreUnreachable("away"), StoreRefused("denied"), PermissionError()])
def test_a_request_that_may_be_there_still_is_not_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
):
    """Whoever starts a driver again with the same id learns that it would be stopped at once."""
    request_stop(tmp_path, "u1")

    def reads(*_: object, **__: object) -> str:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_text", reads)
        with pytest.raises(type(error)):
            withdraw_stop(tmp_path, "u1")
    assert is_stop_requested(tmp_path, "u1")
    withdraw_stop(tmp_path, "u1")
    assert not is_stop_requested(tmp_path, "u1")
    withdraw_stop(tmp_path, "u1")


def test_a_pipeline_that_has_not_run_yet(tmp_path: Path):
    """Its driver may be on its way: the request waits for it, and a second one says the same."""
    for _ in range(2):
        request_stop(tmp_path / "storage" / "orders", "r1")
        assert is_stop_requested(tmp_path / "storage" / "orders", "r1")
