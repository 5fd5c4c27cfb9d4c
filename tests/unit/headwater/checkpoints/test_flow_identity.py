"""The id under which Delta knows a flow's batches: another one for each epoch, the same one under each name of a flow."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.checkpoints.conditions import FlowStateDamaged
from headwater.checkpoints.flow_identity import FlowIdentity, as_text, flow_identity, former_names, names_file


def test_each_epoch_has_its_own():
    """A full refresh counts its batches from 0 again: under the id of the epoch before, Delta would leave them out."""
    identity = FlowIdentity("shop", "orders")
    assert [identity.application(epoch) for epoch in (0, 1, 12)] == [
        "shop.orders@0",
        "shop.orders@1",
        "shop.orders@12",
    ]


def test_names_from_before_a_rename(tmp_path: Path):
    """A renamed flow goes on under its first names; another table's flow of the same name has its own."""
    names = {"sales/sales": FlowIdentity("shop", "orders")}
    names_file(tmp_path).parent.mkdir()
    names_file(tmp_path).write_text(as_text(names))
    assert former_names(tmp_path) == names
    assert flow_identity(tmp_path, "shop", "sales", "sales").application(3) == "shop.orders@3"
    assert flow_identity(tmp_path, "shop", "other", "sales").names == ("shop", "sales")


def test_names_that_can_not_be_read(tmp_path: Path):
    """Without the file a flow has its own names; a damaged one is refused, as a batch in flight would be written twice."""
    assert flow_identity(tmp_path, "shop", "sales", "sales").names == ("shop", "sales")
    names_file(tmp_path).parent.mkdir()
    names_file(tmp_path).write_text("[1]")
    with pytest.raises(FlowStateDamaged):
        flow_identity(tmp_path, "shop", "sales", "sales")
