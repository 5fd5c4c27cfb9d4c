"""The order of the log's records, which does not depend on clocks: the numbers of a log only grow.

Decision 0131.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from headwater.delta_log.commits import newest_version
from headwater.event_log.event import Event
from headwater.storage.delta_tables import delta_table, table_log
from headwater.storage.place import Place

_GREATEST = "max.sequence.data_plane_id.seq_no"


class LogSequence:
    """Numbers records behind everything that the log has when they are written.

    A record's number is the time of its writer's clock in microseconds since 1970, or more where the log is ahead of that
    clock: the clock was set back, or that of another machine is fast.
    """

    def __init__(self, table: Place) -> None:
        self._table = table
        self._last = 0
        self._known_version: int | None = None

    def number(self, events: Iterable[Event]) -> list[Event]:
        """The events with numbers that ascend, all greater than any in the log; call it just before they are appended."""
        self._catch_up()
        numbered = []
        for event in events:
            self._last = max(self._last + 1, event.sequence)
            numbered.append(replace(event, sequence=self._last))
        return numbered

    def appended(self) -> None:
        """The events that were numbered last are in the log: unless others wrote meanwhile, no lookup is needed."""
        with suppress(OSError):  # then it is looked up
            version = newest_version(self._table)
            if version == (0 if self._known_version is None else self._known_version + 1):
                self._known_version = version

    def _catch_up(self) -> None:
        """Look at the log where others may have written since the last look: at its files' statistics, not at rows."""
        version = newest_version(self._table)
        if version is not None and version != self._known_version:
            self._last = max(self._last, greatest_sequence(self._table))
            self._known_version = version


def greatest_sequence(table: Place) -> int:
    """The greatest number in a log, 0 in an empty one; the log must be there."""
    import pyarrow as pa
    from deltalake import QueryBuilder

    opened = table_log(table)
    files = pa.table(opened.get_add_actions(flatten=True))
    if not files.num_rows:
        return 0
    maxima: list[Any] = files[_GREATEST].to_pylist() if _GREATEST in files.column_names else [None]
    if None not in maxima:
        return int(max(maxima))
    # Other writers than ours may leave statistics out.
    query = "select max(\"sequence\"['data_plane_id']['seq_no']) as greatest from events"
    answer = QueryBuilder().register("events", delta_table(table)).execute(query).read_all()
    return int(pa.table(answer)["greatest"][0].as_py() or 0)
