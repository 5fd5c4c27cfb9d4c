"""Waiting for a lease and taking nothing."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest

from headwater.leases import turn
from headwater.leases.file_lease import update_lease
from headwater.leases.turn import wait_for_turn

MINUTE = timedelta(minutes=1)


class Clock:
    """Seconds that pass while somebody sleeps."""

    def __init__(self) -> None:
        self.seconds, self.sleeps = 0.0, 0

    def __call__(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        """Pass them."""
        self.seconds += seconds
        self.sleeps += 1


def test_it_says_for_whom_and_ends_with_it(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """The log has one line of the holder; what is left of the time is what was not slept; nobody waits for a free lease."""
    caplog.set_level(logging.INFO, "headwater.leases")
    clock = Clock()
    with ExitStack() as other:
        other.enter_context(update_lease(tmp_path, "first"))

        def sleep(seconds: float) -> None:
            clock.sleep(seconds)
            if clock.sleeps == 20:
                other.close()

        left = wait_for_turn(tmp_path, MINUTE, clock=clock, sleep=sleep)
    assert left == timedelta(seconds=40)
    assert ["first, process" in record.getMessage() for record in caplog.records] == [True]
    assert wait_for_turn(tmp_path, MINUTE, clock=clock, sleep=clock.sleep) == MINUTE
    assert (clock.sleeps, len(caplog.records)) == (20, 1)


def test_who_has_it_to_the_end(tmp_path: Path):
    """Nothing is left of the time then, and no more than it was slept."""
    clock = Clock()
    with update_lease(tmp_path, "first"):
        assert not wait_for_turn(tmp_path, timedelta(seconds=2.5), clock=clock, sleep=clock.sleep)
    assert clock.seconds == 2.5


def test_a_lease_whose_file_is_gone_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Whoever has it may end between two looks: that is waited for, and nothing fails."""
    clock, answers = Clock(), iter([True, False])
    monkeypatch.setattr(turn, "is_held", lambda _: next(answers))
    left = wait_for_turn(tmp_path, MINUTE, clock=clock, sleep=clock.sleep)
    assert (left, clock.sleeps) == (timedelta(seconds=59), 1)
