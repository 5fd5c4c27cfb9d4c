"""A full refresh ends the flows that a table had before, and the roles that its flows had, with their rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.headwater_spark.update_parts import context_of, dataset, flow, run_of, state_of

from headwater.checkpoints.layout import FlowState
from headwater.errors import LeaseLost
from headwater.graph.update_plan import ResetStage
from headwater_spark.execution import former_flows
from headwater_spark.execution.former_flows import make_replaceable, with_former_flows


@pytest.mark.parametrize(
    ("flows", "empty", "ended"),
    [
        (("orders",), True, ("gone", "orders")),
        (("orders", "more"), True, ("gone", "orders", "more")),
        (("orders",), False, ("orders",)),
        ((), True, ()),
    ],
)
def test_flows_that_are_no_longer_declared(
    tmp_path: Path, flows: tuple[str, ...], empty: bool, ended: tuple[str, ...]
):
    """They come first, where the table's rows go; a declared flow that is not part of it keeps its position."""
    context = context_of(tmp_path, dataset(), flows=(flow(), flow("more", "orders"), flow("gone", "others")))
    for name in ("orders", "more", "gone"):
        state_of(context, flow=name, epoch=1)
    stage = ResetStage("orders", flows, empty)
    assert with_former_flows(context, stage) == ResetStage("orders", ended, empty)


class View:
    """A view with states of it and of a flow ``gone``; ``checks``: how often it is looked at whether its rows are a view's."""

    def __init__(
        self, root: Path, monkeypatch: pytest.MonkeyPatch, *, may: str = "true", **roles: str
    ) -> None:
        self.checks: list[FlowState] = []
        table = dataset(table_properties={"pipelines.reset.allowed": may})
        self.context = context_of(root, table, flows=(flow(),))
        self.run: Any = run_of(self.context, table)
        self.checkpoints = {
            name: state_of(self.context, flow=name, epoch=2, role=role) for name, role in roles.items()
        }
        monkeypatch.setattr(
            former_flows, "check_flow", lambda _run, state, _checks: self.checks.append(state)
        )

    def refreshed(self, *, force: bool) -> dict[str, tuple[int, str | None]]:
        """The epochs and roles after the view was made ready."""
        state = self.run.checkpoint.read_state()
        make_replaceable(self.run, state, force=force)
        states = {name: checkpoint.read_state() for name, checkpoint in self.checkpoints.items()}
        return {name: (state.epoch, state.role) for name, state in states.items()}


def test_a_full_refresh_of_a_table_that_was_a_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Each position that was a stream's is left behind; those of views stay what they are."""
    view = View(tmp_path / "1", monkeypatch, orders="stream", gone="changes")
    assert view.refreshed(force=True) == {"orders": (3, None), "gone": (3, None)}
    view = View(tmp_path / "2", monkeypatch, orders="view", gone="view")
    assert view.refreshed(force=True) == {"orders": (2, "view"), "gone": (2, "view")}
    assert view.checks == []


@pytest.mark.parametrize(("force", "may"), [(False, "true"), (True, "false"), (False, "false")])
def test_rows_that_are_not_to_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, force: bool, may: str):
    """Unless they are, and may be, taken away, they have to be a view's: nothing else is touched."""
    view = View(tmp_path, monkeypatch, may=may, orders="stream", gone="stream")
    assert view.refreshed(force=force) == {"orders": (2, "stream"), "gone": (2, "stream")}
    assert [state.epoch for state in view.checks] == [2]


def test_a_view_that_never_ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It has no position to leave; a flow before it may have."""
    view = View(tmp_path, monkeypatch, gone="stream")
    assert view.refreshed(force=True) == {"gone": (3, None)}
    view.refreshed(force=False)
    assert view.checks == [FlowState()]


@pytest.mark.parametrize("lost", [False, True])
def test_a_position_that_another_driver_has_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: bool):
    """A driver that stood still leaves what was written since; a state that is lost is that of the newest epoch."""
    view = View(tmp_path, monkeypatch, orders="stream")
    checkpoint = view.checkpoints["orders"]
    last = checkpoint.read_state()
    if lost:
        checkpoint.epoch_folder(2).mkdir()
        checkpoint.state_file.unlink()
        make_replaceable(view.run, last, force=True)
        assert checkpoint.read_state().epoch == 3
        return
    checkpoint.write_state(FlowState(epoch=5, role="view"))
    with pytest.raises(LeaseLost):
        make_replaceable(view.run, last, force=True)
    assert checkpoint.read_state() == FlowState(epoch=5, role="view")
