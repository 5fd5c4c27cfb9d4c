"""SQL over the event log's table by delta-rs, whichever version of Headwater wrote it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from headwater.delta_log.conditions import words_of
from headwater.delta_log.damaged_commits import damaged_commit
from headwater.event_log.conditions import EventLogUnreadable
from headwater.event_log.event import Origin, event_table
from headwater.storage.delta_tables import small_table
from headwater.storage.place import Place, is_url

_COLUMNS = (
    *("id", "sequence", "origin", "timestamp", "message", "level"),
    *("maturity_level", "error", "details", "event_type"),
)


def query(state_folder: Place, sql: str) -> list[dict[str, Any]]:
    """The rows of a query over ``events``; none where there is no log yet.

    Raises:
        EventLogUnreadable: the table is damaged, or needs what this version does not know.
    """
    table = event_table(state_folder)
    if not (table / "_delta_log").is_dir():
        if isinstance(table, Path) and (table.is_file() or table.parent.is_file()):
            raise EventLogUnreadable(
                "The event log can't be read: a file lies where its folder should be.",
                where=table,
                remedy="Move the file away; put the folder back from a backup, or have the next update begin another log.",
            )
        return []
    import pyarrow as pa
    from deltalake import QueryBuilder
    from deltalake.exceptions import DeltaError, TableNotFoundError

    try:
        source = small_table(table)
        _refuse_damaged(source, table)
        answer = QueryBuilder().register("events", source).execute(_in_todays_columns(source, sql)).read_all()
    except TableNotFoundError:
        return []
    except DeltaError as error:
        raise _unreadable(error, table) from error
    except Exception as error:
        # delta-rs has no class for a data file that is gone or damaged.
        if type(error) is not Exception:
            raise
        raise _unreadable(error, table) from error
    rows: list[dict[str, Any]] = pa.table(answer).to_pylist()
    return rows


def _refuse_damaged(source: Any, table: Place) -> None:
    """An empty commit reads as one without records; the log that was opened lies on a disk, as it is or as a copy."""
    if is_url(source.table_uri):
        return
    try:
        damaged = damaged_commit(Path(unquote(urlparse(source.table_uri).path)))
    except FileNotFoundError:  # cleaned away meanwhile
        return
    if damaged is not None:
        raise EventLogUnreadable(
            f"A commit of the event log, version {int(damaged[0].stem)}, is damaged: {damaged[1]}. Its records are missing.",
            where=table / "_delta_log" / damaged[0].name,
            remedy="Restore the file from a backup. If there is none, move the folder of the log aside: the next update begins another one. "
            "Nothing was changed.",
        )


def _unreadable(error: Exception, table: Place) -> EventLogUnreadable:
    return EventLogUnreadable(
        f"The event log can't be read: {words_of(error)}",
        where=table,
        remedy="Where a newer version wrote it, use that version. Where a file of it is damaged or gone, move the folder aside: the next "
        "update begins another log. Nothing was changed.",
    )


def literal(value: str) -> str:
    """A text as SQL spells it."""
    return "'" + value.replace("'", "''") + "'"


def moment_literal(moment: datetime) -> str:
    """A point in time as ``query`` compares it with the log's ``timestamp``; UTC where it has no zone."""
    utc = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    # Not as text: that is compared in nanoseconds, which end in 2262.
    micros = (utc - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return f"arrow_cast({micros}, 'Timestamp(Microsecond, Some(\"UTC\"))')"


def _in_todays_columns(source: Any, sql: str) -> str:
    """The query, over a log of another version: columns that it lacks read as NULL, those it has more are not seen.

    A log written by this version, the usual case, is queried as it is.
    """
    fields = {field.name: field.type for field in source.schema().fields}
    origin = {field.name for field in fields["origin"].fields} if "origin" in fields else set()
    origin_fields = set(Origin.__dataclass_fields__)
    if set(_COLUMNS) == set(fields) and origin_fields == origin:
        return sql
    parts = ", ".join(f"'{name}', {_part(name, origin)}" for name in Origin.__dataclass_fields__)
    columns = [
        f"named_struct({parts}) as origin" if name == "origin" else _column(name, set(fields))
        for name in _COLUMNS
    ]
    # A CTE may not take the name of the table that it reads.
    return " ".join(
        [
            "with log as (select",
            ", ".join(columns),
            "from events)",
            sql.replace(" from events", " from log", 1),
        ]
    )


def _column(name: str, there: set[str]) -> str:
    return f'"{name}"' if name in there else f'cast(null as varchar) as "{name}"'


def _part(name: str, there: set[str]) -> str:
    kind = {"batch_id": "bigint", "epoch": "int"}.get(name, "varchar")
    return f"origin['{name}']" if name in there else f"cast(null as {kind})"
