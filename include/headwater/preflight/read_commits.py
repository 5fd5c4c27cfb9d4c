"""Whether what a stream has read of a Delta table is still in the table's log.

Decision 0263.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headwater.checkpoints.conditions import SourceReplaced
from headwater.delta_log.commits import commit_written
from headwater.preflight.damage import Damage, Repair
from headwater.preflight.delta_source_log import Unread
from headwater.preflight.flow_start import FlowStart
from headwater.storage.place import Place


def newest_read(table: Place, offset: Any) -> dict[str, int]:
    """The newest version of a table that a stream has read from, and when its commit says that it was made; for the flow's state.

    ``offset``: where the stream stands. Empty where one of the two is not known.
    """
    version = _newest(offset)
    written = None if version is None else commit_written(table, version)
    return {} if version is None or written is None else {"read": version, "written": written}


def source_was_brought_back(start: FlowStart, index: int, unread: Unread) -> Iterator[Damage]:
    """A table that was brought back from a copy keeps its id, and gets other commits under the numbers that were read."""
    entry = start.state.sources[index] if index < len(start.state.sources) else {}
    read, written = entry.get("read"), entry.get("written")
    newest = _newest(unread.offset)
    # A position that was taken back is before what was read then.
    if read is None or newest is None or read > newest:
        return
    ends = unread.commits[-1]
    now = commit_written(unread.table, read)
    if ends >= read and now in (None, written):  # cleaned away, or the same
        return
    is_now = f"the table ends at version {ends}" if ends < read else f"version {read} is another commit"
    yield Damage(
        SourceReplaced(
            f"The table {unread.name!r} was brought back from a copy since {start.flow!r} last read it: {is_now}. "
            "What was written since the copy would be left out, or read twice.",
            where=unread.table,
            remedy=f"Refill the table: headwater run PIPELINE_DIR --full-refresh {start.dataset}; or bring back this flow and its "
            f"table from the same time as well; or keep the rows and read on from a version: {start.command('new-epoch')} --from-version V",
        ),
        (
            f"read up to version {read}, of {written}",
            f"that version now: {now or 'not there'}",
            f"newest: {ends}",
        ),
        (Repair.FULL_REFRESH, Repair.NEW_EPOCH),
    )


def _newest(offset: Any) -> int | None:
    if not isinstance(offset, Mapping) or "reservoirVersion" not in offset:
        return None
    version = int(offset["reservoirVersion"])
    begun = bool(offset.get("isStartingVersion")) or int(offset.get("index", -1)) >= 0
    return version if begun else (version - 1 if version > 0 else None)
