"""Reads of a dataset as what it is not: a stream as a batch, or a batch as a stream."""

from __future__ import annotations

from headwater.definitions.flow import Flow
from headwater.errors import NotADataFrame, StreamingReadOfMaterializedView


def stream_read_as_batch(view: str, flow: Flow) -> NotADataFrame:
    """The error of a streaming ``view`` that a ``flow`` reads as a batch; the remedy is in the flow's language."""
    if flow.snapshots is not None:
        remedy = (
            f"A snapshot is a state as a whole: let {view!r} read with spark.read or dp.read, or take the snapshots from a table. "
            "For a stream of changes use dp.create_auto_cdc_flow."
        )
    elif _in_sql(flow):
        remedy = f"Read it as a stream: FROM STREAM {view}."
    else:
        remedy = f'Read it with dp.read_stream("{view}") or spark.readStream.table.'
    return NotADataFrame(f"The view {view!r} is a stream and is read as a batch.", remedy=remedy)


def batch_read_as_stream(view: str, flow: Flow) -> NotADataFrame:
    """The error of a ``view`` of a batch that a ``flow`` reads as a stream."""
    remedy = (
        f"Leave STREAM out, FROM {view}, or let the view read streams."
        if _in_sql(flow)
        else f'Read it with dp.read("{view}"), or let the view read streams.'
    )
    return NotADataFrame(f"The view {view!r} is a batch and is read as a stream.", remedy=remedy)


def stream_of_recomputed_rows(name: str, flow: Flow) -> StreamingReadOfMaterializedView:
    """The error of a materialized view that a ``flow`` reads as a stream."""
    changes = 'spark.readStream.option("readChangeFeed", "true").table(...).'
    remedy = (
        f"Leave STREAM out: FROM {name}. A flow of a Python source may follow its changes: {changes}"
        if _in_sql(flow)
        else f'Read it as a batch, dp.read("{name}"), or follow its changes: {changes}'
    )
    return StreamingReadOfMaterializedView(
        f"{name!r} is a materialized view: each refresh replaces its rows, which a stream can't follow.",
        remedy=remedy,
    )


def _in_sql(flow: Flow) -> bool:
    return flow.location is not None and flow.location.in_sql
