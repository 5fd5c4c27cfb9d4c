"""Which epochs of a flow are there on a store, where marks of folders outlive what was in them."""

from __future__ import annotations

import json

import pytest

from headwater.checkpoints import layout
from headwater.checkpoints.conditions import FlowStateDamaged
from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.errors import LeaseLost
from headwater.storage.atomic import read_record


def test_marks_of_folders_are_no_epoch(s3):
    """A flow whose state is lost goes on in its newest epoch that has a file: marks without one are what a removed epoch left."""
    folder = s3.place("places", "epochs-on-a-store/flow")
    s3.put_mark(folder / "2")
    s3.put_mark(folder / "2" / "offsets")
    assert FlowCheckpoint(folder).surviving_state() is None
    (folder / "1" / "offsets" / "0").write_text("v1\n{}\n{}")
    state = FlowCheckpoint(folder).surviving_state()
    assert state is not None
    assert state.epoch == 1


@pytest.mark.parametrize("there", [True, False])
def test_a_change_takes_two_requests(s3, there):
    """The tag comes with what is read: the condition costs nothing."""
    checkpoint = FlowCheckpoint(s3.place("places", f"epochs-on-a-store/changed-{there}"))
    if there:
        checkpoint.write_state(FlowState(epoch=3, others={"newer": 1}))
    before = len(s3.requests())
    assert checkpoint.update_state(completed=True).epoch == (3 if there else 0)
    assert [method for method, _ in s3.requests()[before:]] == ["GET", "PUT"]
    state = checkpoint.read_state()
    assert state is not None
    assert (state.completed, state.others) == (True, {"newer": 1} if there else {})


@pytest.mark.parametrize("there", [True, False])
def test_what_another_driver_has_written_meanwhile_stays(s3, monkeypatch, there):
    """A driver that stood still between its read and its write is past its lease: another one has opened an epoch since."""
    checkpoint = FlowCheckpoint(s3.place("places", f"epochs-on-a-store/frozen-{there}"))
    if there:
        checkpoint.write_state(FlowState(epoch=3))

    def stands_still(file):
        try:
            return read_record(file)
        finally:
            checkpoint.write_state(FlowState(epoch=4))

    with monkeypatch.context() as patched:
        patched.setattr(layout, "read_record", stands_still)
        with pytest.raises(LeaseLost):
            checkpoint.update_state(completed=True)
    assert checkpoint.read_state() == FlowState(epoch=4)
    assert checkpoint.update_state(completed=True) == FlowState(epoch=4, completed=True)


def test_what_a_change_was_decided_from(s3):
    """A driver that looks again after it stood still finds another epoch than the one that it has filled: it writes nothing."""
    checkpoint = FlowCheckpoint(s3.place("places", "epochs-on-a-store/another-epoch"))
    checkpoint.write_state(FlowState(epoch=4, sink_version=2))
    with pytest.raises(LeaseLost, match="another-epoch"):
        checkpoint.update_state(of_epoch=3, completed=True)
    assert checkpoint.read_state() == FlowState(epoch=4, sink_version=2)
    assert checkpoint.update_state(of_epoch=4, completed=True).completed


def test_a_damaged_state_is_not_replaced(s3):
    """It may be restored from a backup."""
    checkpoint = FlowCheckpoint(s3.place("places", "epochs-on-a-store/damaged"))
    checkpoint.state_file.write_text(json.dumps(["no", "state"]))
    with pytest.raises(FlowStateDamaged):
        checkpoint.update_state(completed=True)
    assert json.loads(checkpoint.state_file.read_text()) == ["no", "state"]
