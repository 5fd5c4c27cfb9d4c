"""The kind of a dataset, by what its functions return; and which flows fit it."""

from __future__ import annotations

from pyspark.sql import DataFrame

from headwater.definitions.dataset import Dataset, DatasetKind
from headwater.definitions.flow import Flow, FlowKind
from headwater.errors import NotADataFrame, UnknownDataset

_BATCH_OR_TABLE = "Read with spark.read or dp.read, or declare it with @dp.table."
_STREAM_OR_ONCE = "Read with spark.readStream or dp.read_stream; with once=True, read with spark.read."
# The same remedies where the flow is a statement of SQL.
_IN_SQL = {
    _STREAM_OR_ONCE: "Write FROM STREAM table for what is to be read as a stream; INSERT INTO ONCE reads the whole table, once. "
    "For a table that is recomputed: CREATE OR REFRESH MATERIALIZED VIEW.",
    _BATCH_OR_TABLE: "Leave STREAM out, or write CREATE OR REFRESH STREAMING TABLE.",
}


def resolved_kind(dataset: Dataset, frames: list[tuple[Flow, DataFrame]]) -> DatasetKind:
    """The kind of a dataset whose flows gave ``frames``; raises NotADataFrame where one of them does not fit."""
    if dataset.kind is DatasetKind.TEMPORARY_VIEW:
        return dataset.kind
    streams = {flow.name: frame.isStreaming for flow, frame in frames}
    kind = dataset.kind
    if kind is DatasetKind.SINK:
        for flow, frame in frames:
            _check_sink_flow(flow, frame)
        return kind
    if kind is DatasetKind.TABLE:
        own = streams.get(dataset.name, True)
        kind = DatasetKind.STREAMING_TABLE if own else DatasetKind.MATERIALIZED_VIEW
    for flow, frame in frames:
        _check_table_flow(flow, frame, kind, len(frames))
    return kind


def _check_table_flow(flow: Flow, frame: DataFrame, kind: DatasetKind, flows: int) -> None:
    if kind is DatasetKind.MATERIALIZED_VIEW and frame.isStreaming:
        _wrong_kind(
            flow,
            "a materialized view needs a batch DataFrame, and its query gives a streaming one",
            _BATCH_OR_TABLE,
        )
    if flow.kind is FlowKind.REPLACE and not frame.isStreaming:
        _wrong_kind(flow, "rows are replaced by key as a stream brings them, and the function returned a batch DataFrame",
                    "Read with spark.readStream or dp.read_stream, or leave replace_using out.")  # fmt: skip
    if kind is DatasetKind.MATERIALIZED_VIEW and flows > 1:
        _wrong_kind(flow, "flows append to streaming tables, and the target is a materialized view",
                    "Declare the target with dp.create_streaming_table.")  # fmt: skip
    if flow.snapshots is not None and frame.isStreaming:
        _wrong_kind(flow, "a snapshot is a batch DataFrame, and the source is a stream",
                    "Read it with spark.read or dp.read; for a stream of changes use dp.create_auto_cdc_flow.")  # fmt: skip
    if kind is DatasetKind.STREAMING_TABLE and flow.snapshots is None and frame.isStreaming == flow.once:
        need = "a batch DataFrame (once=True)" if flow.once else "a streaming DataFrame"
        _wrong_kind(flow, f"a flow into a streaming table needs {need}", _STREAM_OR_ONCE)


def _check_sink_flow(flow: Flow, frame: DataFrame) -> None:
    if flow.kind is FlowKind.REPLACE:
        _wrong_kind(flow, "rows can be replaced by key in a streaming table, and the target is a sink",
                    "Declare the target with dp.create_streaming_table.")  # fmt: skip
    if frame.isStreaming == flow.once:
        need = "a batch DataFrame (once=True)" if flow.once else "a streaming DataFrame"
        _wrong_kind(flow, f"a flow into a sink needs {need}", _STREAM_OR_ONCE)


def refuse_sink(dataset: Dataset) -> None:
    """Raise UnknownDataset where someone reads a sink."""
    if dataset.sink is not None:
        raise UnknownDataset(
            f"{dataset.name!r} is a sink: rows leave the pipeline there, and nothing in it can read them.",
            remedy="Read the table that the sink's flow reads, or declare a streaming table in the sink's place.",
        )


def _wrong_kind(flow: Flow, what: str, remedy: str) -> None:
    in_sql = flow.location is not None and flow.location.in_sql
    remedy = _IN_SQL.get(remedy, remedy) if in_sql else remedy
    raise NotADataFrame(f"{flow.name!r}: {what}.", where=flow.location, remedy=remedy)
