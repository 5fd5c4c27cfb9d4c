"""What a flow is checked with before it starts."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.unit.headwater_spark.update_parts import context_of, dataset, flow, run_of, sink
from tests.unit.headwater_spark.written_table import commit

from headwater.checkpoints.conditions import ChangeMemoryLost, TableFilesGone, TableLogHole
from headwater.checkpoints.layout import FlowState, remembered_changes
from headwater.definitions.sink import SinkKind
from headwater.delta_log.commits import commit_file
from headwater.errors import FlowFailed, SourceUnreachable
from headwater.graph.manifest import FlowEntry
from headwater.preflight.flow_start import FlowStart
from headwater_spark.execution import start_checks
from headwater_spark.execution.start_checks import source_identities

ORDERS = dataset()
ID = "11111111-2222-3333-4444-555555555555"


def test_what_a_start_is_checked_with(monkeypatch, tmp_path: Path):
    """The state as it lies there; the destination as it is now; the plan only where the same Spark spelled it."""
    context: Any = context_of(tmp_path, ORDERS)
    context.spark.version = "4.2"
    context.pipeline.manifest.flows = (FlowEntry(name="orders", target="orders", streaming=True),)
    context.pipeline.evaluation.frames = {"orders": None}
    commit(context.table_path(ORDERS))

    def bare(*_: Any) -> FlowStart:
        return FlowStart(
            "p", "orders", "orders", context.checkpoint("orders", "orders"), FlowState(), None, "seen"
        )

    monkeypatch.setattr(start_checks, "flow_start", bare)
    monkeypatch.setattr(start_checks, "state_plan", lambda _: ("Aggregate",))
    monkeypatch.setattr(start_checks, "examine", lambda *_: [])
    state = FlowState(epoch=3, versions={"spark": "4.2"})
    start = start_checks.check_flow(run_of(context), state)
    assert (start.state, start.table, start.sink_id) == (state, context.table_path(ORDERS), "seen")
    assert start.plan == ("Aggregate",)
    assert start_checks.check_flow(run_of(context, one=flow(once=True)), state).plan is None
    assert start_checks.check_flow(run_of(context), FlowState(versions={"spark": "4.1"})).plan is None
    context.pipeline.manifest.flows = (FlowEntry(name="orders", target="out", streaming=True),)
    kafka = sink(SinkKind.KAFKA, "kafka", topic="t")
    context.pipeline.manifest.dataset = context_of(tmp_path, kafka).pipeline.manifest.dataset
    assert start_checks.check_flow(run_of(context, kafka), state).sink_id == "kafka:t"


def test_what_was_mended_is_recorded(monkeypatch, tmp_path: Path):
    """What a check made good is said, with its condition and the epoch."""
    context: Any = context_of(tmp_path, ORDERS)
    context.spark.version = "4.2"
    context.pipeline.manifest.flows = (FlowEntry(name="orders", target="orders", streaming=True),)
    damage = SimpleNamespace(error=SimpleNamespace(what="It was cut off."), condition="CUT")
    start = FlowStart(
        "p", "orders", "orders", context.checkpoint("orders", "orders"), FlowState(), None, None
    )
    monkeypatch.setattr(start_checks, "flow_start", lambda *_: start)
    monkeypatch.setattr(start_checks, "examine", lambda *_: [])
    monkeypatch.setattr(start_checks, "mended", lambda *_: [(damage, "it was written again")])
    start_checks.check_flow(run_of(context), FlowState(epoch=3))
    ((kind, message, more),) = context.events.emitted
    assert (kind, message, more["epoch"]) == (
        "operation_progress",
        "It was cut off. It was written again.",
        3,
    )
    assert more["details"]["operation_progress"]["condition"] == "CUT"


def test_a_log_that_cant_be_read_is_named(monkeypatch, tmp_path: Path):
    """The check that says which file of the table's log is missing is heard, and other errors stay as they are."""
    context: Any = context_of(tmp_path, ORDERS)
    context.pipeline.manifest.flows = (FlowEntry(name="orders", target="orders", streaming=True),)
    table = context.table_path(ORDERS)
    start = FlowStart(
        "p", "orders", "orders", context.checkpoint("orders", "orders"), FlowState(), table, None
    )
    monkeypatch.setattr(start_checks, "flow_start", lambda *_: start)
    other, unreadable = ValueError("no log"), SourceUnreachable("no log")
    run = run_of(context)
    assert start_checks.refusal_of_log(run, other) is other
    assert start_checks.refusal_of_log(run, unreadable) is unreadable
    log = table / "_delta_log"
    log.mkdir(parents=True)
    for version in (0, 2):
        (log / f"{version:020d}.json").write_text("{}")
    refused = start_checks.refusal_of_log(run, unreadable)
    assert isinstance(refused, TableLogHole)
    assert start_checks.refusal_of_log(run, other) is other


@pytest.mark.parametrize("place", ["memory", "table", "quarantine"])
@pytest.mark.parametrize("harm", [Path.unlink, lambda file: file.write_bytes(file.read_bytes()[:-9])])
def test_an_older_file_that_is_missed(monkeypatch, tmp_path: Path, place: str, harm):
    """A failure that names a file of the flow's own is the finding of the deep check; one that names another file stays as it is."""
    context: Any = context_of(tmp_path, ORDERS)
    context.pipeline.manifest.flows = (FlowEntry(name="orders", target="orders", streaming=True),)
    checkpoint, state = context.checkpoint("orders", "orders"), context.pipeline.project.state_folder
    places: Any = {
        "memory": remembered_changes(state, "orders"),
        "table": context.table_path(ORDERS),
        "quarantine": tmp_path / "kept_out",
    }
    for folder in places.values():
        for number in range(2):
            write_deltalake(str(folder), pa.table({"id": [number]}), mode="append")
    start = FlowStart(
        "p", "orders", "orders", checkpoint, FlowState(change_memory=1, has_quarantine=True), places["table"], "id",
        quarantine=places["quarantine"],
    )  # fmt: skip
    monkeypatch.setattr(start_checks, "flow_start", lambda *_, deep, brokers: replace(start, deep=deep))
    run, failed = run_of(context), FlowFailed("Flow 'orders' failed")
    (older,) = (
        places[place] / json.loads(line)["add"]["path"]
        for line in commit_file(places[place], 0).read_text().splitlines()
        if "add" in json.loads(line)
    )
    messages = [f"FileNotFoundError: Object at location lake/{older.name} not found"]
    assert start_checks.refusal_of_files(run, failed, messages) is failed
    harm(older)
    assert start_checks.refusal_of_files(run, failed, ["ValueError: part-0.parquet"]) is failed
    assert start_checks.refusal_of_files(run, failed, ["ValueError: no file"]) is failed
    refused = start_checks.refusal_of_files(run, failed, messages)
    assert isinstance(refused, ChangeMemoryLost if place == "memory" else TableFilesGone)
    assert older.name in refused.what


def test_sources_are_known_in_their_order():
    """One identity a source of now; one that went is forgotten, one that came has no past."""
    seen: list[Any] = []
    first, second = (SimpleNamespace(name=name, table=None) for name in "ab")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            start_checks,
            "source_identity",
            lambda source, before, _: seen.append((source.name, before)) or {},
        )
        source_identities(SimpleNamespace(sources=(first, second)), FlowState(sources=({"n": 1},)))  # type: ignore[arg-type]
        source_identities(SimpleNamespace(sources=(first,)), FlowState(sources=({"n": 1}, {"n": 2})))  # type: ignore[arg-type]
        assert source_identities(SimpleNamespace(sources=None), FlowState(sources=({"n": 1},))) == ()  # type: ignore[arg-type]
    assert seen == [("a", {"n": 1}), ("b", None), ("a", {"n": 1})]


@pytest.mark.parametrize(("in_log", "epoch"), [([], 0), ([0], 0), ([0, 2], 2)])
def test_a_state_that_is_lost(monkeypatch, tmp_path: Path, in_log: list[int], epoch: int):
    """The epoch of a flow that is no stream is read from its table: under an earlier one its batch would count as written."""
    monkeypatch.setattr(start_checks, "check_flow", lambda *_: None)
    run = run_of(context_of(tmp_path, dataset()))
    for number in in_log:
        commit(run.table, metadata={"pipeline": "p", "flow": "orders", "epoch": number})
    assert start_checks.bounded_state(run).epoch == epoch
    run.checkpoint.update_state(epoch=7)
    assert start_checks.bounded_state(run_of(run.context)).epoch == 7


def test_the_version_of_delta(monkeypatch):
    """Where Delta's Python package is not installed (a cluster may have the jar alone), no flow fails for it."""
    asked: list[str] = []

    def version(name: str) -> str:
        asked.append(name)
        if len(asked) > 1:
            raise PackageNotFoundError(name)
        return "4.2.0"

    monkeypatch.setattr(start_checks, "version", version)
    assert [start_checks._delta_version.__wrapped__() for _ in range(2)] == ["4.2.0", "unknown"]
    assert asked == ["delta-spark"] * 2
