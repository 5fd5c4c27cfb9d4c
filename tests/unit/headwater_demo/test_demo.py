"""How the demo ends: an update that is under way is let to its end first."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from headwater.errors import UpdateFailed
from headwater_demo.demo import Demo
from headwater_demo.sample_data import SampleData


class Following:
    """Holds the DAG, or fails to."""

    def __init__(self, error: BaseException | None) -> None:
        self.error, self.waited = error, 0.0

    def hold(self, seconds: float) -> None:
        self.waited = seconds
        if self.error is not None:
            raise self.error


def ended(tmp_path: Path, error: BaseException | None) -> tuple[Following, str]:
    shown, following = io.StringIO(), Following(error)
    demo = Demo(None, Console(file=shown), SampleData(1, "x"))  # type: ignore[arg-type]
    demo.__dict__["following"] = following
    demo.end()
    return following, shown.getvalue()


def test_the_update_that_runs_may_end(tmp_path):
    """The wait is bounded; where all goes well nothing is said."""
    following, shown = ended(tmp_path, None)
    assert 60 <= following.waited <= 600
    assert "cut off" not in shown


@pytest.mark.parametrize(
    ("error", "reason"),
    [(UpdateFailed("it did not end in time"), "in time"), (KeyboardInterrupt(), "interrupted")],
)
def test_an_update_that_takes_too_long_is_cut_off(tmp_path, error, reason):
    """After the wait, or a second Ctrl-C, the demo ends all the same, and says what that means."""
    assert reason in ended(tmp_path, error)[1]
