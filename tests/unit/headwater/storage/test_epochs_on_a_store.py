"""Which epochs of a flow are there on a store, where marks of folders outlive what was in them."""

from __future__ import annotations

from headwater.checkpoints.layout import FlowCheckpoint


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
