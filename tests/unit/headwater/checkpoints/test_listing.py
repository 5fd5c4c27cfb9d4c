"""Which epochs of which flows there are."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from headwater.checkpoints import listing
from headwater.checkpoints.layout import FlowState, flow_checkpoint
from headwater.checkpoints.listing import list_checkpoints


def listed(root: Path) -> list[tuple[str, str, int, bool]]:
    """The epochs, and which of them is live."""
    return [(one.dataset, one.flow, one.epoch, one.live) for one in list_checkpoints(root)]


def test_epochs_of_flows(tmp_path: Path):
    """In order; the live one is there, though nothing lies in it yet, where the flow has others."""
    assert listed(tmp_path) == []
    for dataset, flow, live, epochs in (("b", "x", 10, (2, 9)), ("a", "y", 0, ()), ("b", "a", 1, (1, 0))):
        checkpoint = flow_checkpoint(tmp_path, dataset, flow)
        checkpoint.write_state(FlowState(epoch=live))
        for epoch in epochs:
            checkpoint.epoch_folder(epoch).mkdir()
    (tmp_path / "checkpoints" / "b" / "file").write_text("")
    assert listed(tmp_path) == [
        ("b", "a", 0, False),
        ("b", "a", 1, True),
        ("b", "x", 2, False),
        ("b", "x", 9, False),
        ("b", "x", 10, True),
    ]


def test_a_live_epoch_that_is_not_known(tmp_path: Path):
    """The others are shown all the same."""
    checkpoint = flow_checkpoint(tmp_path, "t", "f")
    checkpoint.epoch_folder(3).mkdir(parents=True)
    checkpoint.state_file.write_text("{")
    assert listed(tmp_path) == [("t", "f", 3, False)]


def test_an_epoch_that_is_damaged(tmp_path: Path):
    """It is listed with what is wrong, beside the whole ones."""
    checkpoint = flow_checkpoint(tmp_path, "t", "f")
    checkpoint.write_state(FlowState(epoch=1))
    for epoch, text in ((0, "v1\n{"), (1, 'v1\n{}\n{"logOffset":3}')):
        for log, content in (("offsets", text), ("commits", "v1\n{}")):
            file = checkpoint.epoch_folder(epoch) / log / "7"
            file.parent.mkdir(parents=True)
            file.write_text(content)
    damaged, whole = list_checkpoints(tmp_path)
    assert (damaged.epoch, damaged.last_batch, whole.epoch, whole.last_batch) == (0, None, 1, 7)
    assert damaged.problem
    assert whole.problem is None


@pytest.mark.parametrize(("ahead", "age"), [(-3600, 3600), (0, 0), (60, 0)])
def test_the_age_of_an_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead: int, age: int):
    """Since its last batch was marked; by a clock that is behind the storage's it is new, and not of the future."""
    folder = flow_checkpoint(tmp_path, "t", "f").epoch_folder(0)
    for log, content in (("offsets", 'v1\n{}\n{"logOffset":3}'), ("commits", "v1\n{}")):
        (folder / log).mkdir(parents=True)
        (folder / log / "7").write_text(content)
    os.utime(folder / "commits" / "7", (1_000_000 + ahead,) * 2)
    monkeypatch.setattr(listing, "time", SimpleNamespace(time=lambda: 1_000_000.0))
    (entry,) = list_checkpoints(tmp_path)
    assert (entry.age, entry.last_batch) == (age, 7)
    (folder / "commits" / "7").unlink()
    (entry,) = list_checkpoints(tmp_path)
    assert entry.age is None
