"""A table's rows and the flow that is to write to it have to come from the same kind of flow."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest

from headwater.checkpoints.flow_role import FlowRole, last_role
from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.preflight.checks import CHECKS, CHECKS_OF_ONCE_FLOWS, CHECKS_OF_VIEWS, examine
from headwater.preflight.flow_start import FlowStart
from headwater.preflight.role_checks import role_was_changed

WRITTEN = FlowState(sink_id="table-1", completed=True)


def start_of(tmp_path: Path, state: FlowState, role: FlowRole | None, flow: str = "t") -> FlowStart:
    """The start of a flow of the table ``t``, whose state is stored."""
    checkpoint = FlowCheckpoint(tmp_path / "checkpoints" / "t" / flow)
    if state.sink_id is not None:
        checkpoint.write_state(state)
    return FlowStart(
        "p", flow, "t", checkpoint, state, tmp_path / "t", "table-1", role=role, declared=(flow,)
    )


def conditions(start: FlowStart) -> list[str]:
    """What the check finds."""
    return [damage.condition for damage in role_was_changed(start)]


@pytest.mark.parametrize(("before", "now"), list(permutations(FlowRole, 2)))
def test_every_change_of_a_role_is_refused(tmp_path: Path, before: FlowRole, now: FlowRole):
    """Between any two roles nothing of the one's position means anything to the other."""
    start = start_of(tmp_path, replace(WRITTEN, role=before), now)
    (damage,) = role_was_changed(start)
    assert damage.condition == "FLOW_KIND_CHANGED"
    assert damage.blocks
    assert "--full-refresh t" in damage.error.remedy
    assert conditions(replace(start, role=before)) == []


def test_what_never_wrote_may_change(tmp_path: Path):
    """A first run that failed before a row was there leaves nothing that could be lost or doubled."""
    never = FlowState(role=FlowRole.STREAM)
    assert conditions(replace(start_of(tmp_path, never, FlowRole.VIEW), sink_id=None)) == []
    assert conditions(start_of(tmp_path, FlowState(), FlowRole.VIEW)) == []
    assert conditions(start_of(tmp_path, replace(WRITTEN, role=FlowRole.VIEW), None)) == []


@pytest.mark.parametrize(
    ("left", "now", "found"),
    [
        (FlowRole.STREAM, FlowRole.VIEW, True),
        (FlowRole.ONCE, FlowRole.VIEW, True),
        (FlowRole.VIEW, FlowRole.STREAM, True),
        (FlowRole.STREAM, FlowRole.STREAM, False),
        (FlowRole.ONCE, FlowRole.CHANGES, False),
        (FlowRole.VIEW, FlowRole.VIEW, False),
    ],
)
def test_a_flow_that_is_no_longer_declared(tmp_path: Path, left: FlowRole, now: FlowRole, found: bool):
    """Flows of a table come and go; only a view and other flows exclude each other, whatever their names."""
    former = FlowCheckpoint(tmp_path / "checkpoints" / "t" / "load")
    former.write_state(replace(WRITTEN, role=left))
    start = start_of(tmp_path, FlowState(), now)
    assert conditions(start) == ["FLOW_KIND_CHANGED"] * found
    # One that wrote nothing in its role comes after whoever did; one that did can't have been followed by another kind.
    assert conditions(replace(start, state=FlowState(role=now))) == ["FLOW_KIND_CHANGED"] * found
    assert conditions(replace(start, state=replace(WRITTEN, role=now))) == []
    assert conditions(replace(start, declared=("t", "load"))) == []
    former.write_state(replace(WRITTEN, role=left).opened(1))  # after a full refresh
    assert conditions(start) == []


def test_damage_beside_it_is_no_obstacle(tmp_path: Path):
    """A former flow whose state can't be read says nothing; the flow's own checks go on."""
    former = tmp_path / "checkpoints" / "t" / "load"
    former.mkdir(parents=True)
    (former / "flow.json").write_text("{")
    assert conditions(start_of(tmp_path, replace(WRITTEN, role=FlowRole.VIEW), FlowRole.VIEW)) == []


def test_states_of_earlier_versions(tmp_path: Path):
    """They have no role: what only one kind of flow leaves behind tells it, and streams of change events go on."""
    checkpoint = FlowCheckpoint(tmp_path / "checkpoints" / "t" / "t")
    assert last_role(checkpoint, FlowState(refresh={"runs": []})) is FlowRole.VIEW
    assert last_role(checkpoint, WRITTEN) is None
    checkpoint.epoch_folder(0).mkdir(parents=True)
    (checkpoint.epoch_folder(0) / "metadata").write_text('{"id":"x"}')
    assert last_role(checkpoint, WRITTEN) is FlowRole.STREAM
    assert last_role(checkpoint, replace(WRITTEN, role="of a later version")) is None
    assert conditions(start_of(tmp_path, WRITTEN, FlowRole.CHANGES)) == []
    assert conditions(start_of(tmp_path, WRITTEN, FlowRole.STREAM)) == []
    assert conditions(start_of(tmp_path, WRITTEN, FlowRole.VIEW)) == ["FLOW_KIND_CHANGED"]


def test_it_is_the_first_finding(tmp_path: Path):
    """A stream that was a view has no checkpoint, which is no loss: the error says what happened, in each list of checks."""
    start = start_of(tmp_path, replace(WRITTEN, role=FlowRole.VIEW), FlowRole.STREAM)
    for checks in (CHECKS, CHECKS_OF_ONCE_FLOWS, CHECKS_OF_VIEWS):
        assert examine(start, checks)[0].condition == "FLOW_KIND_CHANGED"
