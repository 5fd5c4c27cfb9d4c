"""Files that could not be read, read again: their rows go through the flow's current query and rules, once."""

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
from headwater_spark.plans.plan_walk import simple_name
from headwater_spark.quarantine.unreadable_files import Messages, StrictReader, reads_files, stream_leaves
from headwater_spark.replays.replayed_query import named_columns
from headwater_spark.rules.source_records import PASSING, frame_of

# Each gives rows of a file from rows of that file alone. What a watermark does was meant for a stream.
_PASSING = {*PASSING, "Project", "Generate", "Union"}
_LEFT_OUT = {"EventTimeWatermark", "CollectMetrics", "DeduplicateWithinWatermark"}
_WAY_OUT = "Land a whole copy under another name: the stream takes it in. Then discard the entry."


def readable_again(
    frame: DataFrame, flow: Flow, entries: Sequence[Any], messages: Messages
) -> tuple[list[Any], DataFrame | None]:
    """Those of the files that can be read now, and what the flow's query gives for them.

    Args:
        frame: the flow's query, over its streams.
        entries: rows of the quarantine table.

    Raises:
        UsageError: a file is gone, or the query can't be run over files by themselves.
    """
    leaves = stream_leaves(frame)
    by_source: dict[int, list[Any]] = {}
    for entry in entries:
        told = json.loads(entry[c.ROW])
        source = int(told["source"])
        if source >= len(leaves) or not reads_files(leaves[source]):
            raise _refused(flow, f"{told['path']} is of a source that {flow.name!r} does not read any more.")
        reader = StrictReader.of(leaves[source], frame.sparkSession, messages)
        if _is_whole(flow, reader, told["path"]):
            by_source.setdefault(source, []).append(entry)
    readable = [entry for found in by_source.values() for entry in found]
    if not readable:
        return [], None
    rows = {}
    for source, leaf in enumerate(leaves):
        paths = [json.loads(entry[c.ROW])["path"] for entry in by_source.get(source, ())]
        rows[source] = _relation(leaf, frame, paths, messages)
    plan = _replaced(frame._jdf.queryExecution().analyzed(), leaves, rows, flow)  # noqa: SLF001 - no public face
    return readable, frame_of(plan, frame.sparkSession)


def _is_whole(flow: Flow, reader: StrictReader, path: str) -> bool:
    try:
        return reader.failure([path], others=True) is None
    except AnalysisException as error:
        if "PATH_NOT_FOUND" not in str(error):
            raise
        raise UsageError(
            f"The file {path} is not there any more.",
            where=flow.location,
            remedy="Put it back, whole, or discard its entry: `headwater quarantine discard ... --id ...`.",
        ) from None


def _relation(leaf: Any, frame: DataFrame, paths: Sequence[str], messages: Messages) -> Any:
    """What stands in a stream's place: the rows of its files, none where it has none."""
    session = frame.sparkSession
    columns = [str(field.name()) for field in leaf.schema().fields()]
    if paths:
        reader = StrictReader.of(leaf, session, messages)
        rows = reader.frame(paths).select(*[f"`{name}`" for name in columns])
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
    if kind in _LEFT_OUT:
        return _replaced(node.children().head(), leaves, rows, flow)
    if kind not in _PASSING and not (kind == "Join" and len(streams) == 1):
        raise _refused(
            flow, f"{flow.name!r} keeps state: rows of a file can't be made without those of others."
        )
    children = node.children()
    for index in streams:
        children = children.updated(index, _replaced(children.apply(index), leaves, rows, flow))
    return node.withNewChildren(children)


def _refused(flow: Flow, what: str) -> UsageError:
    return UsageError(what, where=flow.location, remedy=_WAY_OUT)
