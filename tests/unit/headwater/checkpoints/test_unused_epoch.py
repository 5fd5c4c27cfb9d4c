"""An epoch that a flow may open was never its own, whatever of its past is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from headwater.checkpoints.conditions import FlowStateDamaged
from headwater.checkpoints.flow_identity import FlowIdentity
from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.checkpoints.unused_epoch import unused_epoch

IDENTITY = FlowIdentity("shop", "orders")


@pytest.fixture
def checkpoint(tmp_path: Path) -> FlowCheckpoint:
    return FlowCheckpoint(tmp_path / "orders" / "orders")


def test_a_flow_without_a_past_begins_at_zero(checkpoint):
    """Nothing was used: other flows' epochs do not count."""
    assert unused_epoch(checkpoint, "orders", IDENTITY, None, [("clicks", 4)]) == 0


def test_one_that_a_reset_means_to_open_is_taken(checkpoint):
    """A reset that was killed opens its epoch later: nobody else gets it meanwhile."""
    checkpoint.write_state(FlowState(epoch=1, pending_epoch=5))
    assert unused_epoch(checkpoint, "orders", IDENTITY, None, []) == 6


def test_the_table_outlives_a_lost_checkpoint(checkpoint, tmp_path):
    """Epochs in the table's log count under the flow's own names only."""
    table = tmp_path / "table"
    for flow, epoch in (("orders", 2), ("clicks", 7)):
        metadata = {"userMetadata": json.dumps({"pipeline": "shop", "flow": flow, "epoch": epoch})}
        properties = CommitProperties(custom_metadata=metadata)
        write_deltalake(str(table), pa.table({"id": [1]}), mode="append", commit_properties=properties)
    assert unused_epoch(checkpoint, "orders", IDENTITY, table, []) == 3


def test_a_renamed_flow_keeps_its_epochs(checkpoint):
    """The event log has a renamed flow under both names."""
    former = FlowIdentity("shop", "sales")
    assert unused_epoch(checkpoint, "orders", former, None, [("sales", 3), ("orders", 1)]) == 4


def test_a_damaged_state_is_no_empty_one(checkpoint):
    """Where the live epoch can't be read, none is given out."""
    checkpoint.folder.mkdir(parents=True)
    checkpoint.state_file.write_text("{")
    with pytest.raises(FlowStateDamaged):
        unused_epoch(checkpoint, "orders", IDENTITY, None, [])


epochs = st.sets(st.integers(0, 9))


@given(
    folders=epochs, live=st.none() | st.integers(0, 9), pending=st.none() | st.integers(0, 9), recorded=epochs
)
def test_it_is_above_all_that_is_known(tmp_path_factory, folders, live, pending, recorded):
    """Whichever of the traces are left, the epoch is the one after the highest."""
    checkpoint = FlowCheckpoint(tmp_path_factory.mktemp("flow"))
    for epoch in folders:
        checkpoint.epoch_folder(epoch).mkdir()
    if live is not None:
        checkpoint.write_state(FlowState(epoch=live, pending_epoch=pending))
    known = folders | recorded | ({live, pending} - {None} if live is not None else set())
    unused = unused_epoch(checkpoint, "orders", IDENTITY, None, [("orders", epoch) for epoch in recorded])
    assert unused == max(known, default=-1) + 1


def test_a_folder_that_was_never_filled_is_no_epoch(checkpoint):
    """Its writer died: nothing begins in it, and its number is not given again, since what it wrote may still be there."""
    for epoch in (0, 3):
        (checkpoint.folder / str(epoch)).mkdir(parents=True)
    (checkpoint.folder / ".3.making").write_text("a writer")
    assert (checkpoint.epochs(), checkpoint.epochs_begun()) == ([0], [0, 3])
    assert unused_epoch(checkpoint, "orders", FlowIdentity("p", "orders"), None, ()) == 4
