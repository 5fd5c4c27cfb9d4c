"""New epochs that begin where the caller says: at the start, a version, offsets, or a moment."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from headwater.checkpoints.offsets import read_offsets
from headwater.definitions.source import SourceKind
from headwater.delta_log.table_history import head_version, table_id
from headwater.delta_log.versions import read_commit
from headwater.doctor.file_log_lines import Lines, file_offset, lines_by_age
from headwater.doctor.flow_case import FlowCase
from headwater.doctor.open_epoch import open_at, open_empty
from headwater.doctor.repair_plan import NOTHING, RepairNotPossible, RepairOptions, RepairPlan
from headwater.doctor.reprocessed_rows import REPLACED, chain, rows_in_all
from headwater.errors import CheckpointUnreadable, UsageError
from headwater.kafka.login import PROTOCOL, login_settings
from headwater.kafka.times import offsets_at
from headwater.preflight.damage import Repair
from headwater.preflight.flow_start import Positions, StreamSource
from headwater.preflight.source_checks import last_offsets
from headwater.storage.place import Place


def plan_new_epoch(case: FlowCase, options: RepairOptions) -> RepairPlan:
    """The plan of a new epoch.

    Raises:
        UsageError: where not exactly one start is given, or it does not fit the sources.
        RepairNotPossible: where the flow is stateful and would not begin at the start.
    """
    if options.begins != 1:
        raise UsageError(
            "A new epoch needs exactly one of --from-start, --from-version, --from-offsets, --from-time.",
            remedy="`headwater checkpoints inspect PIPELINE_DIR` shows where the flow stands.",
        )
    if options.from_start:
        return _from_start(case)
    if case.stateful:
        raise RepairNotPossible(
            f"{case.flow.name!r} keeps state: begun in the middle, its state would be empty and its sums wrong.",
            remedy="Restore a snapshot, rewind, or begin at the start.",
        )
    position, files = _position(case, options)
    offsets = last_offsets(case.start)
    if offsets is not None and len(offsets.sources) != len(position):
        raise RepairNotPossible(
            f"{case.flow.name!r} reads a source more than once: its checkpoint has {len(offsets.sources)} positions.",
            remedy="Begin at the start, restore a snapshot, or rewind.",
        )
    lost, doubled = _cost(case, position)
    return RepairPlan(
        Repair.NEW_EPOCH,
        case.flow.name,
        case.flow.target,
        (
            f"create epoch {case.unused_epoch()} at {'; '.join(text or '-' for text in position)}",
            *(f"take {len(lines)} files of source {index} as read" for index, lines in files.items()),
            "make it the live one; the old one stays",
        ),
        lost,
        doubled,
        lambda check: open_at(case, position, files, check),
    )


def _from_start(case: FlowCase) -> RepairPlan:
    position = _oldest(case)
    offsets = last_offsets(case.start)
    if position is not None and offsets is not None and len(offsets.sources) != len(position):
        position = None
    where = "the beginning of its sources"
    if position is not None:
        where = "; ".join(text or "the beginning" for text in position)
    elif any(source.kind is SourceKind.KAFKA for source in case.start.sources or ()):
        where = "where its sources' startingOffsets say"
    return RepairPlan(
        Repair.NEW_EPOCH,
        case.flow.name,
        case.flow.target,
        (f"open epoch {case.unused_epoch()} at {where}; the table keeps its rows",),
        NOTHING,
        REPLACED if case.by_key else rows_in_all(case),
        lambda check: open_at(case, position, {}, check) if position is not None else open_empty(case, check),
    )


def _oldest(case: FlowCase) -> Positions | None:
    """The oldest messages of Kafka sources: left alone, a stream would begin where its option says, by default at the end.

    None where there is no such source, or the flow keeps state: its batches have to be counted from 0.
    """
    sources = case.start.sources or ()
    if case.stateful or not any(source.kind is SourceKind.KAFKA for source in sources):
        return None
    return tuple(
        json.dumps(_offsets_at(case, source, 0), separators=(",", ":"))
        if source.kind is SourceKind.KAFKA
        else None
        for source in sources
    )


def _offsets_at(case: FlowCase, source: StreamSource, millis: int) -> dict[str, dict[str, int]]:
    options = source.options
    login = login_settings(case.project, options["kafka.bootstrap.servers"], options.get(PROTOCOL, ""))
    return offsets_at(options, millis, login)


def _position(case: FlowCase, options: RepairOptions) -> tuple[Positions, dict[int, Lines]]:
    sources = case.start.sources or ()
    if options.from_offsets is not None:
        return _requested_offsets(sources, options.from_offsets), {}
    if options.from_version is not None:
        if len(sources) != 1 or sources[0].table is None:
            raise UsageError(
                "--from-version is for flows with one source that is a Delta table.",
                remedy="Begin at a moment (--from-time), at offsets (--from-offsets), or at the start (--from-start).",
            )
        return (delta_offset(sources[0].table, options.from_version),), {}
    assert options.from_time is not None
    ends: list[str | None] = []
    files: dict[int, Lines] = {}
    for index, source in enumerate(sources):
        if source.table is not None:
            ends.append(delta_offset(source.table, _version_at(source.table, options.from_time)))
        elif source.kind is SourceKind.FILES:
            files[index] = lines_by_age(source, options.from_time)
            ends.append('{"logOffset":0}')
        elif source.kind is SourceKind.KAFKA:
            ends.append(json.dumps(_offsets_at(case, source, options.from_time), separators=(",", ":")))
        else:
            raise RepairNotPossible(
                f"A source of kind {source.kind} can't be begun at a time.",
                where=source.name,
                remedy="Give offsets (--from-offsets), as `checkpoints inspect --json` shows them, or --from-start.",
            )
    return tuple(ends), files


def _requested_offsets(sources: tuple[StreamSource, ...], offsets: tuple[Any, ...]) -> Positions:
    if len(offsets) != len(sources):
        raise UsageError(
            f"--from-offsets has {len(offsets)} offsets, and the flow reads {len(sources)} streams.",
            remedy="Give one a stream, in the order in which `checkpoints inspect --json` shows them.",
        )
    for source, offset in zip(sources, offsets, strict=True):
        if not _is_offset(offset, source):
            raise UsageError(
                f"{offset!r} is not an offset of {source.name!r}.",
                remedy="Give offsets as `checkpoints inspect --json` shows them; files are begun with --from-time.",
            )
        if source.table is not None and offset["reservoirId"] != table_id(source.table):
            raise UsageError(
                f"{offset!r} is a position in another table than {source.name!r} is now.",
                where=source.table,
                remedy="Where the table was made anew, name one of its versions (--from-version), or begin at the start.",
            )
    return tuple(json.dumps(offset, separators=(",", ":")) for offset in offsets)


def _is_offset(offset: Any, source: StreamSource) -> bool:
    """Whether a value is a position in a source of this kind, as far as its form says."""
    if not isinstance(offset, dict) or file_offset(json.dumps(offset)) is not None:
        return False
    if source.table is not None:
        return type(offset.get("reservoirVersion")) is int and "reservoirId" in offset
    return source.kind is not SourceKind.KAFKA or all(isinstance(parts, dict) for parts in offset.values())


def delta_offset(table: Place, version: int) -> str:
    """The position of a stream that begins with a version of a Delta table; raises UsageError where it has no such version."""
    head = head_version(table)
    if not 0 <= version <= head + 1:
        raise UsageError(
            f"The table has versions 0 to {head}, not {version}.",
            where=table,
            remedy=f"Name one of them, or {head + 1} to begin with what comes next.",
        )
    offset = {
        "sourceVersion": 1,
        "reservoirId": table_id(table),
        "reservoirVersion": version,
        "index": -1,
        "isStartingVersion": False,
    }
    return json.dumps(offset, separators=(",", ":"))


def _version_at(table: Place, millis: int) -> int:
    head = head_version(table)
    for version in range(head, -1, -1):
        commit = read_commit(table, version)
        if commit is None:
            shown = datetime.fromtimestamp(millis / 1000, UTC).isoformat()
            raise RepairNotPossible(
                f"The log of the table does not reach back to {shown}.",
                where=table,
                remedy="Name a later moment or a version (--from-version), or begin at the start.",
            )
        if commit.timestamp * 1000 < millis:
            return version + 1
    return 0


def _cost(case: FlowCase, position: Positions) -> tuple[str, str]:
    """What is left out, and what comes again, where both positions are versions of one table."""
    unknown = "can't be known: compare the position with that of the live epoch (checkpoints inspect)"
    table = (case.start.sources or (None,))[0]
    if len(position) != 1 or table is None or table.table is None:
        return unknown, REPLACED if case.by_key else unknown
    begins = json.loads(position[0] or "{}")
    now = _live_version(case, begins["reservoirId"])
    # After a rewind, the live epoch is behind rows that an earlier epoch wrote to the table.
    if now is None or (case.written is None and chain(case)):
        return unknown, REPLACED if case.by_key else unknown
    lost = _source_rows(table.table, now, begins["reservoirVersion"])
    doubled = _source_rows(table.table, begins["reservoirVersion"], now)
    return lost, REPLACED if case.by_key else doubled


def _live_version(case: FlowCase, table: str) -> int | None:
    """The version at which the live epoch stands; None where that is not known, or is one of another table than of this id."""
    last = max(case.start.committed, default=None)
    text = case.positions.get(max(case.positions)) if case.positions else None
    try:
        text = read_offsets(case.start.folder, last).sources if last is not None else text
        position = json.loads((text or (None,))[0] or "{}")
        return int(position["reservoirVersion"]) if position["reservoirId"] == table else None
    except (CheckpointUnreadable, KeyError, ValueError):
        return None


def _source_rows(table: Place, first: int, end: int) -> str:
    if end <= first:
        return NOTHING
    count = 0
    for version in range(first, end):
        commit = read_commit(table, version)
        records = [file.records for file in commit.added] if commit is not None else [None]
        if any(number is None for number in records):
            return f"the rows of versions {first} to {end - 1} of the source; how many can't be known"
        count += sum(number or 0 for number in records)
    return f"what {count} rows of the source give (its versions {first} to {end - 1})"
