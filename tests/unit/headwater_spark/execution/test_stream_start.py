"""Which way a flow's batches go, under which ids, and where they land."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from tests.unit.headwater_spark.recorded_writes import RecordedFrame, RecordedWrite
from tests.unit.headwater_spark.update_parts import context_of, dataset, flow, plan_batch, run_of, sink
from tests.unit.headwater_spark.written_table import commit

from headwater.checkpoints.conditions import NameTaken
from headwater.checkpoints.layout import FlowState
from headwater.definitions.change_flow import ChangeFlow
from headwater.definitions.expectation import Expectation, UniqueKey, ViolationAction
from headwater.definitions.flow import Replacement
from headwater.definitions.output_kind import OutputKind
from headwater.definitions.sink import SinkKind
from headwater_spark.auto_cdc.apply_changes import ChangeTarget
from headwater_spark.delta_writes.delta_append import DeltaAppend
from headwater_spark.delta_writes.delta_merge import DeltaMerge
from headwater_spark.delta_writes.delta_replace import DeltaReplace
from headwater_spark.execution import stream_start as subject
from headwater_spark.execution.foreach_batch import BatchWriter
from headwater_spark.execution.stream_start import start_stream
from headwater_spark.execution.targets.auto_cdc import AutoCdc
from headwater_spark.execution.targets.judged import Judged
from headwater_spark.execution.targets.user_function import UserFunction
from headwater_spark.plans.output_mode import OutputMode

QUARANTINE = Expectation("r", "id > 0", ViolationAction.QUARANTINE)
UNIQUE = Expectation("u", "", ViolationAction.DROP, unique=UniqueKey(("id",)))
KEYS = Replacement(("id",), "at")
CHANGES: Any = ChangeFlow("events", ("id",), "n")
TOLD = {"pipeline": "p", "flow": "orders", "epoch": 2}


@pytest.fixture(autouse=True)
def stream_format(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no JVM here that could be asked which sinks it has."""
    monkeypatch.setattr(subject, "stream_format", lambda _: "our sink")


def started(
    tmp_path: Path, table: Any, one: Any = None, mode: OutputMode | None = None, **state: Any
) -> tuple[Any, RecordedWrite, Any]:
    """The stream that a flow is started as, the write as Spark got it, and the context."""
    one = one or flow(target=table.name)
    modes = {} if mode is None else {one.name: mode}
    context = context_of(tmp_path, table, flows=(one,), modes=modes)
    frame = RecordedFrame()
    stream = start_stream(run_of(context, table, one), FlowState(epoch=2, **state), frame)  # type: ignore[arg-type]
    return stream, frame.writes[0], context


def target_of(stream: Any) -> Any:
    """What takes the batches."""
    assert isinstance(stream.writer, BatchWriter)
    return stream.writer._target


@pytest.mark.parametrize(
    ("schema", "named"), [(None, ("day",)), ("id INT, day DATE GENERATED ALWAYS AS (DATE '2026-01-01')", ())]
)
def test_partitions_that_are_named(tmp_path: Path, schema: str | None, named: tuple[str, ...]):
    """Spark is told the partitions, and refuses one that is no column; a table with a schema was made with its own."""
    _, write, _ = started(tmp_path, dataset(partition_columns=("day",), schema=schema))
    assert write.partitions == named


def test_an_append_goes_to_the_delta_sink(tmp_path: Path):
    """Through our class, which has it commit under the query's own id; the metadata names pipeline, flow and epoch. Columns may come to the table."""
    stream, write, context = started(tmp_path, dataset(partition_columns=("day",)))
    assert stream.applications == ("query-id", "p.orders@2")
    assert (stream.writer, stream.judged) == (None, None)
    assert (write.words["format"], write.words["outputMode"]) == ("our sink", "append")
    assert write.words["trigger"] == {"availableNow": True}
    assert write.options_given == {
        "checkpointLocation": str(context.checkpoint("orders", "orders").epoch_folder(2)),
        "userMetadata": json.dumps(TOLD),
        "mergeSchema": "true",
    }
    assert (write.partitions, write.path) == (("day",), str(context.table_path(dataset())))


@pytest.mark.parametrize(
    ("more", "mode", "kind", "query_mode"),
    [
        ({}, OutputMode(OutputKind.UPDATE, ("id",)), DeltaMerge, "update"),
        ({"replacement": KEYS}, OutputMode(OutputKind.REPLACE, ("id",)), DeltaReplace, "append"),
        ({"changes": CHANGES}, OutputMode(OutputKind.CHANGES, ("id",)), AutoCdc, "append"),
    ],
)
def test_what_is_merged_goes_through_a_target(tmp_path: Path, more, mode, kind, query_mode):
    """Its commits are found under the flow's own id first; the metadata is the same as on the Delta sink."""
    stream, write, context = started(tmp_path, dataset(), flow(**more), mode)
    target = target_of(stream)
    assert type(target) is kind
    assert stream.applications == ("p.orders@2", "query-id")
    assert write.words["outputMode"] == query_mode
    assert stream.writer._application == "p.orders@2"
    assert stream.writer._metadata == TOLD
    assert stream.writer._checkpoint == context.checkpoint("orders", "orders").epoch_folder(2)
    assert stream.writer._fence == context.check_lease
    if kind is AutoCdc:
        assert isinstance(target._target, ChangeTarget)
        assert target._target.path == context.table_path(dataset())
    else:
        assert target.table == context.table_path(dataset())


def test_an_aggregation_that_is_written_whole(tmp_path: Path):
    """Spark's own sink replaces the table with each batch."""
    stream, write, _ = started(tmp_path, dataset(), mode=OutputMode(OutputKind.COMPLETE))
    assert (stream.writer, write.words["outputMode"]) == (None, "complete")


@pytest.mark.parametrize("state", [{}, {"state_settings": {"x": "1"}}])
@pytest.mark.parametrize("rule", [QUARANTINE, UNIQUE])
def test_rows_that_are_judged(tmp_path: Path, rule: Expectation, state: dict[str, Any]):
    """They go through a judgement, whose target knows batches that the Delta sink wrote before. Only a query without state
    may be judged while it is written.
    """
    table = dataset(expectations=(rule,))
    folder = context_of(tmp_path, table).checkpoint("orders", "orders").epoch_folder(2)
    folder.mkdir(parents=True)
    (folder / "metadata").write_text('{"id": "before"}')
    stream, _, context = started(tmp_path, table, **state)
    judged = target_of(stream)
    assert isinstance(judged, Judged)
    assert stream.judged is judged
    assert (judged.one_pass, stream.writer._stateful) == (not state, bool(state))
    assert judged.target == DeltaAppend(context.table_path(table), query_id="before")
    assert (judged.quarantine is not None) is (rule is QUARANTINE)
    if judged.quarantine is not None:
        assert (judged.quarantine.path, judged.quarantine.epoch) == (context.quarantine_path(table), 2)
        assert (judged.quarantine.flow, judged.quarantine.update_id) == ("orders", "u1")


def test_a_judged_merge_keeps_its_target(tmp_path: Path):
    """The rows that stay are written in the flow's own way."""
    table = dataset(expectations=(QUARANTINE,))
    stream, _, _ = started(tmp_path, table, flow(replacement=KEYS), OutputMode(OutputKind.REPLACE, ("id",)))
    assert isinstance(target_of(stream).target, DeltaReplace)


@pytest.mark.parametrize(
    ("planned", "done", "known", "as_batch"),
    [(4, 3, 4, True), (4, 3, 3, False), (4, 4, 4, False), (None, None, 4, False), (4, 3, None, False)],
)
def test_a_batch_that_was_judged_before(tmp_path: Path, planned, done, known, as_batch):
    """A rule was taken away while a judged batch was in flight, and the table has it: the Delta sink would not know it by
    its own id and write it again, so it goes the way it went before.
    """
    context = context_of(tmp_path, dataset())
    folder = context.checkpoint("orders", "orders").epoch_folder(2)
    if planned is not None:
        plan_batch(folder, 3, {}, done=True)
        plan_batch(folder, planned, {}, done=done == planned)
    commit(context.table_path(dataset()), transactions={} if known is None else {"p.orders@2": known})
    stream, _, _ = started(tmp_path, dataset())
    assert (stream.writer is not None) is as_batch
    if as_batch:
        assert target_of(stream) == DeltaAppend(context.table_path(dataset()))


def test_sinks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Formats of Spark's take the stream with their options; a Delta sink takes no option that says where to, twice."""
    monkeypatch.setattr("headwater_spark.execution.stream_start.made_active", nullcontext)
    stream, write, _ = started(tmp_path, sink(SinkKind.KAFKA, "kafka", topic="t"))
    assert (stream.writer, write.words["format"], write.options_given["topic"]) == (None, "kafka", "t")
    assert "userMetadata" not in write.options_given
    folder = str(tmp_path / "out")
    for option, place in (("Path", folder), ("TableName", "out")):
        named = sink(SinkKind.DELTA, "delta", other="1", **{option: place})
        stream, write, context = started(tmp_path, named)
        path = folder if option == "Path" else str(context.table_path(dataset("out")))
        assert (write.words["format"], write.path, write.options_given["other"]) == ("our sink", path, "1")
        assert option not in write.options_given


def test_a_sink_that_is_a_function(tmp_path: Path):
    """It is called with each batch."""
    stream, _, _ = started(tmp_path, sink(SinkKind.FUNCTION, "f", function=print))
    assert isinstance(target_of(stream), UserFunction)
    assert target_of(stream).function is print


def test_a_quarantine_whose_name_is_taken(tmp_path: Path):
    """A table that is not ours is not written to."""
    table = dataset(expectations=(QUARANTINE,))
    context = context_of(tmp_path, table)
    assert run_of(context).quarantine(0) is None
    path = context.quarantine_path(table)
    assert path is not None
    commit(path)
    with pytest.raises(NameTaken):
        run_of(context, table).quarantine(0)


def test_where_rows_land(tmp_path: Path):
    """A table's folder and id; what other sinks stand for stays the same as long as rows go to the same place."""
    context = context_of(tmp_path, dataset())
    assert run_of(context).delta_table == tmp_path / "warehouse" / "shop" / "orders"
    assert run_of(context).destination_id() is None
    commit(context.table_path(dataset()))
    assert run_of(context).destination_id() == "11111111-2222-3333-4444-555555555555"
    kafka = sink(SinkKind.KAFKA, "kafka", Topic="t")
    assert run_of(context, kafka).delta_table is None
    assert run_of(context_of(tmp_path, kafka), kafka).destination_id() == "kafka:t"
    all_topics, mart = sink(SinkKind.KAFKA, "kafka"), sink(SinkKind.OTHER, "jdbc", "mart")
    assert run_of(context_of(tmp_path, all_topics), all_topics).destination_id() == "kafka:*"
    assert run_of(context_of(tmp_path, mart), mart).destination_id() == "jdbc:mart"
    out = sink(SinkKind.DELTA, "delta", path=str(tmp_path / "x"))
    assert run_of(context, out).delta_table == tmp_path / "x"
