"""How far a live stream has read its sources, and what its table held at that moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headwater.backfills.conditions import BackfillNotPossible, RangeNotReadYet
from headwater.checkpoints.offsets import last_committed_batch, query_id, read_offsets
from headwater.delta_log.table_history import last_batch, table_exists
from headwater.preflight.flow_start import FlowStart, StreamSource
from headwater.storage.delta_tables import delta_table
from headwater.storage.place import Place


@dataclass(frozen=True)
class LivePosition:
    """``ends``: the parsed end offset of each of ``sources``, None where a source has given nothing yet.

    ``table_version``: what the table has at this version is what the sources gave up to ``ends``.
    ``applications``: the ids that the stream commits under.
    """

    sources: tuple[StreamSource, ...]
    ends: tuple[Any, ...]
    table_version: int
    applications: tuple[str, ...]
    checkpoint: Place


def live_position(start: FlowStart) -> LivePosition:
    """Where a flow's stream stands.

    A batch is in the table before Spark marks it as done. So the marks are read first and the table second: a marked
    batch that the table does not name has written nothing to it.

    Raises:
        RangeNotReadYet: the stream has not run yet.
        BackfillNotPossible: it is not known which position belongs to which source.
        CheckpointUnreadable: the checkpoint can't be read.
    """
    marked = last_committed_batch(start.folder)
    if start.table is None or not table_exists(start.table) or start.sources is None:
        raise _not_run(start)
    applications = tuple(
        name for name in (start.state.query_id, query_id(start.folder), start.application) if name is not None
    )
    version, batches = _table_at(start.table, applications)
    batch = max([number for number in (marked, *batches) if number is not None], default=None)
    if batch is None:
        raise _not_run(start)
    offsets = read_offsets(start.folder, batch)
    if len(offsets.sources) != len(start.sources):
        raise BackfillNotPossible(
            f"{start.flow!r} reads {len(start.sources)} streams, and its checkpoint has {len(offsets.sources)} positions: it "
            "is not known which belongs to which.",
            where=start.folder,
            remedy="Refill the table: headwater run PIPELINE_DIR --full-refresh " + start.dataset,
        )
    ends = tuple(offsets.source(index) for index in range(len(offsets.sources)))
    return LivePosition(start.sources, ends, version, applications, start.folder)


def delta_end(position: Mapping[str, Any] | None, source: StreamSource, flow: str) -> int:
    """The first version of a Delta table that a stream has not read; raises RangeNotReadYet where it is in the middle of one."""
    if position is None:
        return 0
    at_boundary = int(position["index"]) < 0 and not position.get("isStartingVersion")
    if not at_boundary:
        raise RangeNotReadYet(
            f"{flow!r} is in the middle of version {position['reservoirVersion']} of {source.name!r}: it is not known "
            "which of its rows are in the table already.",
            where=source.table,
            remedy="Let an update come to its end (headwater run PIPELINE_DIR), then give the command again.",
        )
    return int(position["reservoirVersion"])


def _table_at(table: Place, applications: tuple[str, ...]) -> tuple[int, list[int | None]]:
    opened = delta_table(table)
    return opened.version(), [last_batch(opened, table, name) for name in applications]


def _not_run(start: FlowStart) -> RangeNotReadYet:
    return RangeNotReadYet(
        f"{start.flow!r} has not run yet: its first update brings this range by itself.",
        where=start.folder,
        remedy="Run an update (headwater run PIPELINE_DIR). Or load all history as one batch, and let the stream go on from "
        f"there: headwater backfill PIPELINE_DIR --tables {start.dataset} --then-stream",
    )
