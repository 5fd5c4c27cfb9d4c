"""As what a flow runs, and which flows of a table are no longer declared."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.checkpoints.flow_role import FlowRole, flow_role, former_flows, last_role
from headwater.checkpoints.layout import FlowCheckpoint, FlowState


@pytest.mark.parametrize(
    ("view", "snapshots", "once", "changes", "role"),
    [
        (False, False, False, False, FlowRole.STREAM), (False, False, False, True, FlowRole.CHANGES),
        (False, False, True, False, FlowRole.ONCE), (False, False, True, True, FlowRole.ONCE),
        (False, True, False, True, FlowRole.SNAPSHOTS), (False, True, True, False, FlowRole.SNAPSHOTS),
        (True, False, False, False, FlowRole.VIEW),
    ],
)  # fmt: skip
def test_the_role_of_a_flow(view: bool, snapshots: bool, once: bool, changes: bool, role: FlowRole):
    """A snapshot that is given once is one of snapshots, by whose versions it is known."""
    assert flow_role(view=view, snapshots=snapshots, once=once, changes=changes) is role


@pytest.mark.parametrize(
    ("state", "metadata", "role"),
    [
        ({"role": "once"}, True, FlowRole.ONCE), ({"role": "of another version"}, True, None), ({"refresh": {"a": 1}}, True, FlowRole.VIEW),
        ({"query_id": "q"}, False, FlowRole.STREAM), ({}, True, FlowRole.STREAM), ({}, False, None),
    ],
)  # fmt: skip
def test_the_role_in_which_a_flow_last_ran(
    tmp_path: Path, state: dict[str, object], metadata: bool, role: FlowRole | None
):
    """As its state says; earlier versions did not write it down."""
    checkpoint = FlowCheckpoint(tmp_path / "t" / "f")
    checkpoint.epoch_folder(0).mkdir(parents=True)
    if metadata:
        (checkpoint.epoch_folder(0) / "metadata").write_text("{}")
    assert last_role(checkpoint, FlowState.of(state)) is role


def test_flows_that_are_no_longer_declared(tmp_path: Path):
    """Those with a state that can be read."""
    for name in ("one", "two", "three"):
        FlowCheckpoint(tmp_path / "t" / name).write_state(FlowState())
    (tmp_path / "t" / "three" / "flow.json").write_text("{")
    (tmp_path / "t" / "empty").mkdir()
    former = former_flows(FlowCheckpoint(tmp_path / "t" / "two"), ["two"])
    assert [name for name, _, _ in former] == ["one"]
    assert list(former_flows(FlowCheckpoint(tmp_path / "none" / "f"), [])) == []
