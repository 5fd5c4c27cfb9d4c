"""By what it is known whether somebody has been at a checkpoint since it was looked at."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.headwater.metrics.conftest import Pipeline, write_checkpoint

from headwater.checkpoints.layout import FlowCheckpoint
from headwater.doctor.flow_case import _seen

CHANGES: dict[str, Callable[[FlowCheckpoint], object]] = {
    "a batch was planned": lambda one: (one.epoch_folder(0) / "offsets" / "9").write_text("v1"),
    "a batch was marked": lambda one: (one.epoch_folder(0) / "commits" / "9").write_text("v1"),
    "a log is gone": lambda one: shutil.rmtree(str(one.epoch_folder(0) / "commits")),
    "an epoch was opened": lambda one: write_checkpoint(one.epoch_folder(1), 0, [None]),
    "the state is another": lambda one: one.update_state(completed=False, epoch=3),
    "the state is gone": lambda one: one.state_file.unlink(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_shows_that_somebody_was_at_a_checkpoint(done: Pipeline, change: str):
    """Each of these, in either log; a look by itself shows nothing."""
    checkpoint = done.checkpoint("silver")
    before = _seen(checkpoint)
    assert _seen(checkpoint) == before
    assert before[0] is not None
    assert [Path(str(log)).name for log, _ in before[1]] == ["offsets", "commits"]  # type: ignore[attr-defined]
    CHANGES[change](checkpoint)
    assert _seen(checkpoint) != before
