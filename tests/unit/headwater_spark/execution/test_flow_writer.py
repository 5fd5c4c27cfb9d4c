"""Which target a flow's rows have, whoever gives them; what is written, counted and recorded, and never without the lease."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.headwater_spark.recorded_writes import RecordedFrame
from tests.unit.headwater_spark.update_parts import context_of, dataset, flow, run_of, sink

from headwater.definitions.change_flow import ChangeFlow
from headwater.definitions.flow import Replacement
from headwater.definitions.output_kind import OutputKind
from headwater.definitions.sink import SinkKind
from headwater.errors import LeaseLost
from headwater_spark.delta_writes.batch_commits import BatchCommit
from headwater_spark.delta_writes.delta_append import DeltaAppend
from headwater_spark.delta_writes.delta_merge import DeltaMerge
from headwater_spark.delta_writes.delta_replace import DeltaReplace
from headwater_spark.execution import flow_writer
from headwater_spark.execution.flow_writer import (
    count_rows,
    takes_streams,
    target_of,
    write_batch,
    write_rows,
)
from headwater_spark.execution.targets.auto_cdc import AutoCdc
from headwater_spark.execution.targets.spark_sink import SparkSink
from headwater_spark.execution.targets.user_function import UserFunction
from headwater_spark.plans.output_mode import OutputMode
from headwater_spark.rules.expectations import Quality

CHANGES: Any = ChangeFlow("events", ("id",), "n")
KEYS = Replacement(("id",), "at")


@pytest.mark.parametrize(
    ("table", "more", "mode", "target", "native"),
    [
        (dataset(), {}, None, DeltaAppend, True),
        (dataset(), {"once": True}, None, DeltaAppend, True),
        (dataset(), {}, OutputMode(OutputKind.COMPLETE), DeltaAppend, True),
        (dataset(), {}, OutputMode(OutputKind.UPDATE, ("id",)), DeltaMerge, False),
        (dataset(), {"replacement": KEYS}, None, DeltaReplace, False),
        (dataset(), {"changes": CHANGES}, None, AutoCdc, False),
        (dataset(), {"changes": CHANGES, "once": True}, None, AutoCdc, False),
        (sink(SinkKind.KAFKA, "kafka"), {}, None, SparkSink, True),
        (sink(SinkKind.KAFKA, "kafka"), {}, OutputMode(OutputKind.UPDATE), SparkSink, True),
        (sink(SinkKind.DELTA, "delta", path="/x"), {}, None, DeltaAppend, True),
        (
            sink(SinkKind.FUNCTION, "f", function=print),
            {},
            OutputMode(OutputKind.UPDATE),
            UserFunction,
            False,
        ),
    ],
)
def test_one_target_for_each_kind(tmp_path: Path, table, more, mode, target, native):
    """The kind of the flow and its sink decide; a sink of Spark's takes the stream itself where it can."""
    one = flow(target=table.name, **more)
    context = context_of(tmp_path, table, flows=(one,), modes={} if mode is None else {one.name: mode})
    run = run_of(context, table, one)
    assert type(target_of(run)) is target
    assert takes_streams(run) is native


def test_keys_of_a_backfill(tmp_path: Path):
    """They merge what is appended else; keys of the flow's own stand."""
    run = run_of(context_of(tmp_path, dataset()))
    assert target_of(run, keys=("id",)) == DeltaMerge(run.table, ("id",))
    assert target_of(run, query_id="q") == DeltaAppend(run.table, query_id="q")
    newer = run_of(run.context, one=flow(replacement=KEYS))
    assert target_of(newer, keys=("x",)) == DeltaReplace(run.table, KEYS)


class Lost:
    """A lease that was taken away."""

    token = 1

    def check(self) -> None:
        raise LeaseLost("gone")


def test_nothing_is_written_without_the_lease(monkeypatch, tmp_path: Path):
    """Neither as it is, nor through the rules."""
    run, rows = run_of(context_of(tmp_path, dataset(), lease=Lost())), RecordedFrame()
    monkeypatch.setattr(flow_writer, "apply_expectations", lambda frame, *_: frame)
    for write in (
        lambda: write_batch(run.context, rows, target_of(run), run.transaction(0)),  # type: ignore[arg-type]
        lambda: write_rows(run, rows, target_of(run), run.transaction(0)),  # type: ignore[arg-type]
    ):
        with pytest.raises(LeaseLost):
            write()
    assert rows.writes == []


def test_rows_that_are_read_twice_are_kept(monkeypatch, tmp_path: Path):
    """A function may write the rows to several places: they are the same ones, and are let go in the end."""
    run = run_of(context_of(tmp_path, dataset()))
    calls: list[str] = []
    rows: Any = SimpleNamespace(
        persist=lambda: calls.append("keep"), unpersist=lambda: calls.append("let go")
    )
    monkeypatch.setattr(flow_writer, "apply_expectations", lambda frame, *_: frame)
    monkeypatch.setattr(flow_writer, "Observation", lambda: SimpleNamespace(get={"rows": 3, "dropped": 1}))
    for passes in (1, 2):
        target: Any = SimpleNamespace(passes=passes, write=lambda *_: calls.append("write"))
        assert write_rows(run, rows, target, run.transaction(0)).accepted == 2
    assert calls == ["write", "keep", "write", "let go"]


def test_what_a_commit_says_of_itself(tmp_path: Path):
    """Whose it is and in which epoch, and what else is given."""
    run = run_of(context_of(tmp_path, dataset()))
    transaction = run.transaction(4, 7, batch=7)
    assert (transaction.application, transaction.batch_id) == ("p.orders@4", 7)
    assert json.loads(transaction.user_metadata) == {
        "pipeline": "p",
        "flow": "orders",
        "epoch": 4,
        "batch": 7,
    }


@pytest.mark.parametrize(
    ("commit", "written", "more"),
    [
        (None, 3, {}),
        (BatchCommit(9, 2, 0, 2, 1), 2, {"num_upserted_rows": 2, "num_deleted_rows": 1}),
    ],
)
def test_rows_are_counted(tmp_path: Path, commit: BatchCommit | None, written: int, more: dict[str, int]):
    """What the rules let through was written, unless a merge says itself how many rows it wrote."""
    run = run_of(context_of(tmp_path, dataset()))
    count_rows(run, Quality(5, 1, (), 1), "written", 9, commit, level="METRICS")
    counts = run.outcome
    assert (counts.input_rows, counts.output_rows, counts.dropped_rows, counts.quarantined_rows) == (
        5,
        written,
        1,
        1,
    )
    ((kind, _, event),) = run.context.events.emitted  # type: ignore[attr-defined]
    body = event["details"]["flow_progress"]
    assert (kind, event["flow"], event["dataset"], event["level"]) == (
        "flow_progress",
        "orders",
        "orders",
        "METRICS",
    )
    assert body["metrics"] == {"num_input_rows": 5, "num_output_rows": written, **more}
    assert body["version"] == 9
