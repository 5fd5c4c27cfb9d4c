"""How much of each stream's source a backfill reads: what the live stream has read, or the requested range."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headwater.backfills.backfill_range import BackfillRange, RangeKind
from headwater.backfills.conditions import BackfillNotPossible, InvalidRange
from headwater.backfills.live_position import LivePosition, delta_end
from headwater.checkpoints.offsets import files_seen
from headwater.definitions.source import SourceKind
from headwater.delta_log.table_history import head_version
from headwater.metrics.file_listing import file_paths
from headwater.preflight.flow_start import FlowStart, StreamSource
from headwater.storage.place import Place

_KIND_OF = {
    RangeKind.VERSION: (SourceKind.DELTA, SourceKind.DATASET),
    RangeKind.OFFSET: (SourceKind.KAFKA,),
    RangeKind.FILE_TIME: (SourceKind.FILES,),
}

# The options by which a read chooses topics.
SUBSCRIPTIONS = ("subscribe", "subscribepattern", "assign")


@dataclass(frozen=True)
class DeltaLimit:
    """Versions of a Delta table, both ends included; ``first`` None: all rows of version ``last`` (-1: none)."""

    table: Place
    first: int | None
    last: int
    changes: bool = False
    skips_changes: bool = False


@dataclass(frozen=True)
class KafkaLimit:
    """Offsets as Spark's source takes them; the end is the next offset. ``topics``: the subscription."""

    topics: tuple[tuple[str, str], ...]
    start: str
    end: str


@dataclass(frozen=True)
class FilesLimit:
    """Files of a folder, or below an address of S3. ``seen``: only these paths or addresses; None for all. ``after``, ``before``: bounds of the modification time."""

    path: str
    seen: frozenset[str] | None = None
    after: Any = None
    before: Any = None


Limit = DeltaLimit | KafkaLimit | FilesLimit


def read_so_far(position: LivePosition, flow: str) -> tuple[Limit, ...]:
    """Limits to what a live stream has read of each of its sources.

    Raises:
        RangeNotReadYet: the stream is in the middle of a version.
        BackfillNotPossible: a source can't be read as a batch up to a position.
    """
    pairs = enumerate(zip(position.sources, position.ends, strict=True))
    return tuple(_so_far(source, end, position, index, flow) for index, (source, end) in pairs)


def chosen_part(chosen: BackfillRange, start: FlowStart) -> tuple[Limit, ...]:
    """The part of a flow's source that a range of versions, offsets or file times names.

    Raises:
        InvalidRange: the flow does not have exactly one source with such ranges, or the range exceeds it.
    """
    sources = start.sources or ()
    if len(sources) != 1 or sources[0].kind not in _KIND_OF[chosen.kind]:
        kinds = ", ".join(str(source.kind) for source in sources) or "no stream"
        raise InvalidRange(
            f"{start.flow!r} can't be filled by {chosen.kind}: it reads {kinds}.",
            remedy="version is for one Delta table, offset for one Kafka topic or more, file-time for one folder of files; "
            "event-time is for any.",
        )
    source = sources[0]
    if source.table is not None:
        head = head_version(source.table)
        if chosen.end > head:
            raise InvalidRange(
                f"{source.name!r} has versions up to {head}, and the range goes to {chosen.end}.",
                where=source.table,
            )
        return (_delta(source, source.table, chosen.start, chosen.end),)
    if source.kind is SourceKind.KAFKA:
        return (KafkaLimit(_topics(source), json.dumps(chosen.start), json.dumps(chosen.end)),)
    return (FilesLimit(source.path or "", None, chosen.start, chosen.end),)


def everything(source: StreamSource, end: Any) -> Limit:
    """All of a Delta table or a topic up to a position: the history of a stream that begins there."""
    if source.table is not None:
        return _delta(source, source.table, None, int(end["reservoirVersion"]) - 1)
    return KafkaLimit(_topics(source), "earliest", json.dumps(end))


def read_again(limits: Sequence[Limit]) -> frozenset[str]:
    """The files within limits: those that the stream has read, or all that are there where times are the limit."""
    files: set[str] = set()
    for limit in limits:
        if isinstance(limit, FilesLimit):
            there = {"recursiveFileLookup": "true"}
            files |= limit.seen if limit.seen is not None else set(file_paths(limit.path, there))
    return frozenset(files)


def _so_far(source: StreamSource, end: Any, position: LivePosition, index: int, flow: str) -> Limit:
    if source.table is not None:
        if source.on("readChangeFeed"):
            raise BackfillNotPossible(
                f"{flow!r} follows the changes of {source.name!r}: the table does not show which of them made the rows of a "
                "range.",
                where=source.table,
                remedy="Give a range of versions, --range version --from A --to B, or refill the table with --full-refresh.",
            )
        return _delta(source, source.table, None, delta_end(end, source, flow) - 1)
    if source.kind is SourceKind.KAFKA:
        return KafkaLimit(_topics(source), "earliest", json.dumps(end or {}))
    if source.kind is SourceKind.FILES:
        last = int(end["logOffset"]) if end is not None else -1
        return FilesLimit(source.path or "", frozenset(paths_seen(position.checkpoint, index, last)))
    raise BackfillNotPossible(
        f"{flow!r} reads {source.name!r} ({source.kind}), which can't be read as a batch.",
        remedy="Backfill a table that reads this one's rows, or refill it with --full-refresh.",
    )


def paths_seen(checkpoint: Place, source: int, last: int) -> set[str]:
    """The paths of the files that a stream's source has taken in up to an offset of its log."""
    return {file.path.partition("?superseded=")[0] for file in files_seen(checkpoint, source, up_to=last)}


def _delta(source: StreamSource, table: Place, first: int | None, last: int) -> DeltaLimit:
    skips = source.on("skipChangeCommits")
    return DeltaLimit(table, first, last, source.on("readChangeFeed"), skips)


def _topics(source: StreamSource) -> tuple[tuple[str, str], ...]:
    return tuple(
        sorted((key.lower(), value) for key, value in source.options.items() if key.lower() in SUBSCRIPTIONS)
    )
