"""A flow of snapshots applies each once, in order, wherever its driver is killed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import utils
from tests.unit.headwater_spark.update_parts import context_of, dataset, flow, run_of, state_of
from tests.unit.headwater_spark.written_table import commit

from headwater.checkpoints.layout import FlowState
from headwater.checkpoints.snapshot_versions import VERSION_KEY, SnapshotPosition, SnapshotVersions
from headwater.definitions.change_flow import ChangeFlow
from headwater.errors import CheckpointMismatch, LeaseLost
from headwater.event_log.details import FlowStatus
from headwater_spark.execution import snapshot_flow as module
from headwater_spark.execution.flow_run import FlowRun
from headwater_spark.execution.snapshot_flow import run_snapshots
from headwater_spark.plans import call_sites

APPLICATION = "p.orders@0"


class Killed(BaseException):
    """The driver dies here."""


class Snapshots:
    """A flow that is asked for what follows a version. ``merged``: what was merged into its table, by number and version."""

    def __init__(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *versions: int, once: bool = False
    ) -> None:
        self.given, self.merged = list(versions), list[tuple[int, Any]]()
        self.steps: list[str] = []
        self.differs, self.dies, self.now = True, "", "1"
        self.lease: Any = None
        given: Any = SimpleNamespace(
            changes=ChangeFlow("s", ("id",), None), following=None if once else self._following
        )
        self.flow = flow(snapshots=given, once=once)
        self.context = context_of(tmp_path, dataset(), flows=(self.flow,))
        self.context.pipeline.manifest.flows = (SimpleNamespace(name="orders", time_dependent=False),)  # type: ignore[assignment]
        self.context.pipeline.evaluation.settings = lambda *_: nullcontext()  # type: ignore[method-assign, assignment]
        self.context.lease = SimpleNamespace(token=1, check=self._check_lease)  # type: ignore[misc]
        self.table = self.context.table_path(dataset())
        commit(self.table)
        self.file = tmp_path / "versions.json"
        table = SimpleNamespace(toDF=lambda: SimpleNamespace(schema=None))
        parts: dict[str, Any] = {
            "fingerprints": lambda *_: {"s": self.now}, "snapshots_file": lambda *_: SnapshotVersions(self.file, APPLICATION),
            "bounded_state": lambda run: run.checkpoint.read_state() or FlowState(), "in_own_session": lambda frame: frame,
            "change_columns": lambda *_: None, "check_unchanged": lambda *_, **__: None, "widen_target": lambda *_: None,
            "DeltaTable": SimpleNamespace(forPath=lambda *_: table), "snapshot_changes": self._compared, "merge_snapshot": self._merge,
            "next_snapshot": lambda _, __, position: self._following(position.version),
        }  # fmt: skip
        for name, part in parts.items():
            monkeypatch.setattr(module, name, part)
        monkeypatch.setattr(call_sites, "_notes_call_sites", lambda: True)

    def _following(self, latest: Any) -> Any:
        version = next((one for one in self.given if latest is None or one > latest), None)
        frame = SimpleNamespace(sparkSession=None)
        return None if version is None else SimpleNamespace(frame=frame, version=version, literal=version)

    def _check_lease(self) -> None:
        self.steps.append("lease")
        if self.lease is not None:
            raise self.lease

    @contextmanager
    def _compared(self, *_: Any) -> Iterator[Any]:
        yield SimpleNamespace(count=int(self.differs))

    def _merge(self, _: Any, version: Any, __: Any, transaction: Any) -> None:
        self.steps.append("merge, with notes of lines" if utils.is_debugging_enabled() else "merge")
        if self.dies == "before the commit":
            raise Killed
        written = json.loads(self.file.read_text())
        assert written["intended"]["number"] == transaction.batch_id  # a crash leaves it written down
        metadata = json.loads(transaction.user_metadata)
        commit(self.table, transactions={transaction.application: transaction.batch_id}, metadata=metadata)
        self.merged.append((transaction.batch_id, version))
        if self.dies == "after the commit":
            raise Killed

    def run(self) -> FlowRun:
        run = run_of(self.context, dataset(), self.flow)
        run_snapshots(run)
        return run


def test_each_once_and_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Numbers count on, and versions are the user's; a run without another snapshot merges nothing, nor asks where no source moved."""
    flow_ = Snapshots(tmp_path, monkeypatch, 10, 20)
    run = flow_.run()
    state = run.checkpoint.read_state()
    assert state is not None
    assert run.outcome.status is FlowStatus.COMPLETED
    assert flow_.merged == [(0, 10), (1, 20)]
    assert state.sink_version == run.outcome.version == 2  # an older copy of the table would be missed
    flow_.given.append(30)
    flow_.run()
    assert len(flow_.merged) == 2  # its sources are what they were
    flow_.now = "2"
    flow_.run()
    assert flow_.merged == [(0, 10), (1, 20), (2, 30)]
    flow_.now = "3"
    flow_.run()
    assert len(flow_.merged) == 3


@pytest.mark.parametrize(("dies", "merged"), [("before the commit", [(1, 20)]), ("after the commit", [])])
def test_a_driver_that_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies: str, merged: list[Any]
):
    """What it had begun is merged again under its number where the table does not have it, and never where it has."""
    flow_ = Snapshots(tmp_path, monkeypatch, 10)
    flow_.run()
    flow_.given, flow_.dies, flow_.now = [10, 20], dies, "2"
    with pytest.raises(Killed):
        flow_.run()
    flow_.dies, flow_.merged = "", []
    flow_.given.append(30)
    run = flow_.run()
    assert flow_.merged == [*merged, (2, 30)]
    assert run.outcome.batches == 2  # the one that had been begun is recorded, too


def test_a_snapshot_that_differs_in_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Nothing is committed, and it is not asked for again."""
    flow_ = Snapshots(tmp_path, monkeypatch, 10)
    flow_.differs = False
    flow_.run()
    assert flow_.merged == []
    position = SnapshotVersions(flow_.file, APPLICATION).read()
    assert position is not None
    assert (position.number, position.version, position.intended) == (0, 10, None)


def test_a_position_that_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It is read from the table's commits; where these do not say it, nothing is merged: snapshots would be applied twice."""
    flow_ = Snapshots(tmp_path, monkeypatch, 10, 20)
    flow_.run()
    flow_.file.unlink()
    flow_.given, flow_.merged, flow_.now = [10, 20, 30], [], "2"
    flow_.run()
    assert flow_.merged == [(2, 30)]
    other = Snapshots(tmp_path / "other", monkeypatch, 10)
    commit(other.table, transactions={APPLICATION: 4}, metadata={"pipeline": "p", "flow": "orders", "epoch": 1, VERSION_KEY: None})  # fmt: skip
    with pytest.raises(CheckpointMismatch):
        other.run()
    assert other.merged == []


def test_a_table_whose_older_commits_are_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The file says where the flow stands: nobody asks the log for what it has forgotten."""
    flow_ = Snapshots(tmp_path, monkeypatch, 10, 20)
    SnapshotVersions(flow_.file, APPLICATION).done(SnapshotPosition(intended=(0, 10)))
    commit(flow_.table, transactions={APPLICATION: 0})
    flow_.run()
    assert flow_.merged == [(1, 20)]


@pytest.mark.parametrize("dies", ["", "after the commit"])
def test_a_position_that_is_an_older_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies: str):
    """Under the numbers that followed then, Delta would pass over what comes now: the table's commits say where it stands."""
    flow_ = Snapshots(tmp_path, monkeypatch, 10)
    flow_.run()
    older = flow_.file.read_text()
    for now, version in (("2", 20), ("3", 30)):
        flow_.given, flow_.now = [*flow_.given, version], now
        flow_.run()
    flow_.file.write_text(older)
    flow_.given, flow_.merged, flow_.now, flow_.dies = [10, 20, 30, 40], [], "4", dies
    with pytest.raises(Killed) if dies else nullcontext():
        flow_.run()
    flow_.dies = ""
    flow_.run()
    assert flow_.merged == [(3, 40)]


def test_no_snapshot_is_begun_without_the_lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It is checked before the snapshot is written down, and before it is merged."""
    flow_ = Snapshots(tmp_path, monkeypatch, 10)
    flow_.run()
    assert flow_.steps == ["lease", "merge"]
    flow_.given, flow_.lease, flow_.now = [10, 20], LeaseLost("gone"), "2"
    before = flow_.file.read_text()
    with pytest.raises(LeaseLost):
        flow_.run()
    assert (flow_.steps[-1], flow_.file.read_text()) == ("lease", before)


@pytest.mark.parametrize(
    ("state", "asked"),
    [
        ({}, False),
        ({"completed": False}, True),
        ({"definition_hash": "another"}, True),
        ({"input_versions": {"s": "0"}}, True),
    ],
)
def test_when_a_flow_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: dict[str, Any], asked: bool
):
    """Unless the last run ended well, by this definition, over what its sources have now."""
    flow_ = Snapshots(tmp_path, monkeypatch, 10)
    state_of(
        flow_.context, **{"completed": True, "definition_hash": "hash", "input_versions": {"s": "1"}, **state}
    )
    flow_.run()
    assert bool(flow_.merged) is asked


def test_a_snapshot_that_is_given_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """One that is there is applied, the very first too, and that is all; without one the flow is not done."""
    flow_ = Snapshots(tmp_path, monkeypatch, once=True)
    assert not state_after(flow_).completed
    flow_.given = [10, 20]
    assert state_after(flow_).completed
    assert flow_.merged == [(0, 10)]
    flow_.now = "2"
    assert state_after(flow_).completed
    assert flow_.merged == [(0, 10)]


def state_after(flow_: Snapshots) -> FlowState:
    state = flow_.run().checkpoint.read_state()
    assert state is not None
    return state
