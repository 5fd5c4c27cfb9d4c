"""Read quarantined files again: their rows go through the flow's current query and rules, once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from headwater.definitions.flow import Flow
from headwater.errors import UsageError
from headwater.quarantine import columns as c
from headwater_spark.plans.names import quoted
from headwater_spark.plans.plan_walk import simple_name
from headwater_spark.quarantine.unreadable_files import Messages, StrictReader, reads_files, stream_leaves
from headwater_spark.replays.replayed_query import named_columns
from headwater_spark.rules.source_records import PASSING, frame_of

# Operators whose result for a file depends on that file alone; those of a watermark are for streams only.
_PASSING = {*PASSING, "Project", "Generate", "Union"}
_SKIPPED = {"EventTimeWatermark", "CollectMetrics", "DeduplicateWithinWatermark"}
_REMEDY = "Add an undamaged copy under another name: the stream reads it. Then discard the entry."


def replayable_files(
    frame: DataFrame, flow: Flow, entries: Sequence[Any], messages: Messages
) -> tuple[list[Any], DataFrame | None]:
    """The entries whose files can be read now, and the rows of the flow's query for them.

    Args:
        frame: the flow's query, over its streams.
        entries: rows of the quarantine table.

    Raises:
        UsageError: a file was deleted, or the query can't be run over single files.
    """
    leaves = stream_leaves(frame)
    by_source: dict[int, list[Any]] = {}
    for entry in entries:
        file = json.loads(entry[c.ROW])
        source = int(file["source"])
        if source >= len(leaves) or not reads_files(leaves[source]):
            raise _refused(flow, f"{file['path']} is of a source that {flow.name!r} no longer reads.")
        reader = StrictReader.of(leaves[source], frame.sparkSession, messages)
        if _is_readable(flow, reader, file["path"]):
            by_source.setdefault(source, []).append(entry)
    readable = [entry for entries_of in by_source.values() for entry in entries_of]
    if not readable:
        return [], None
    rows = {}
    for source, leaf in enumerate(leaves):
        paths = [json.loads(entry[c.ROW])["path"] for entry in by_source.get(source, ())]
        rows[source] = _relation(leaf, frame, paths, messages)
    plan = _replaced(frame._jdf.queryExecution().analyzed(), leaves, rows, flow)  # noqa: SLF001 - no public API
    return readable, frame_of(plan, frame.sparkSession)


def _is_readable(flow: Flow, reader: StrictReader, path: str) -> bool:
    try:
        return reader.failure([path], others=True) is None
    except AnalysisException as error:
        if "PATH_NOT_FOUND" not in str(error):
            raise
        raise UsageError(
            f"The file {path} no longer exists.",
            where=flow.location,
            remedy="Restore it, or discard its entry: `headwater quarantine discard ... --id ...`.",
        ) from None


def _relation(leaf: Any, frame: DataFrame, paths: Sequence[str], messages: Messages) -> Any:
    """The plan that replaces a stream: the rows of its files, or no rows."""
    session = frame.sparkSession
    columns = [str(field.name()) for field in leaf.schema().fields()]
    if paths:
        reader = StrictReader.of(leaf, session, messages)
        rows = reader.frame(paths).select(*map(quoted, columns))
    else:
        rows = session.createDataFrame([], StructType.fromJson(json.loads(leaf.schema().json())))
    return named_columns(rows, leaf)


def _replaced(node: Any, leaves: Sequence[Any], rows: dict[int, Any], flow: Flow) -> Any:
    if not node.isStreaming():
        return node
    source = next((index for index, leaf in enumerate(leaves) if leaf.equals(node)), None)
    if source is not None:
        return rows[source]
    kind = simple_name(node)
    streams = [
        index for index in range(node.children().length()) if node.children().apply(index).isStreaming()
    ]
    if kind in _SKIPPED:
        return _replaced(node.children().head(), leaves, rows, flow)
    if kind not in _PASSING and not (kind == "Join" and len(streams) == 1):
        raise _refused(
            flow, f"{flow.name!r} keeps state: the rows of a file can't be computed without those of others."
        )
    children = node.children()
    for index in streams:
        children = children.updated(index, _replaced(children.apply(index), leaves, rows, flow))
    return node.withNewChildren(children)


def _refused(flow: Flow, reason: str) -> UsageError:
    return UsageError(reason, where=flow.location, remedy=_REMEDY)
