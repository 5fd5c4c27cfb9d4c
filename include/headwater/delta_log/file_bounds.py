"""Which files of a Delta table may have rows with certain values: by its log alone, which has bounds of what each file holds.

Decision 0170.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeAlias

from headwater.delta_log.listed_files import plain_rows
from headwater.storage.delta_tables import delta_table
from headwater.storage.place import Place

# A value as it is compared: whole numbers, texts, dates as days and times as microseconds since 1970.
Value: TypeAlias = int | str
# Logs keep times in whole milliseconds, rounded down.
_ROUNDED = 999
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Reader features with which a file's rows are those that it has.
_READABLE = frozenset({"timestampNtz"})
_FIRST_WITH_FEATURES = 3
# Paths that mean the same as they are and URL-encoded, below the table's folder.
_PLAIN_PATH = re.compile(r"[A-Za-z0-9._=-]+(/[A-Za-z0-9._=-]+)*")


@dataclass(frozen=True)
class Sought:
    """The values of a column that are looked for.

    Args:
        column: its name.
        values: ascending.
        null: whether NULL is one of them.
        between: whether all values between the first and the last are looked for, too.
    """

    column: str
    values: tuple[Value, ...]
    null: bool = False
    between: bool = False


@dataclass(frozen=True)
class Bounds:
    """The least and the greatest value of a column in a file, None where the log does not say; and how many are NULL."""

    low: Value | None = None
    high: Value | None = None
    nulls: int | None = None

    def may_have(self, sought: Sought) -> bool:
        """Whether a row with one of the values may be there."""
        if sought.null and self.nulls != 0:
            return True
        if not sought.values:
            return False
        if self.low is None or self.high is None or type(self.low) is not type(sought.values[0]):
            return True
        if sought.between:
            return not (sought.values[-1] < self.low or sought.values[0] > self.high)  # type: ignore[operator]
        place = bisect_left(sought.values, self.low)
        return place < len(sought.values) and sought.values[place] <= self.high  # type: ignore[operator]


_UNKNOWN = Bounds()


@dataclass(frozen=True)
class TableFile:
    """A file of a version. ``partition``: its values as the log writes them; ``bounds``: by column, in lower case."""

    path: str
    bytes: int
    modified: int
    records: int | None
    partition: Mapping[str, str | None] = field(default_factory=dict)
    bounds: Mapping[str, Bounds] = field(default_factory=dict)

    def may_have(self, sought: Iterable[Sought]) -> bool:
        """Whether a row may be there that has one of the values in each of the columns."""
        return all(self.bounds.get(one.column.lower(), _UNKNOWN).may_have(one) for one in sought)


def table_files(table: Place, version: int | None, columns: Collection[str]) -> tuple[TableFile, ...] | None:
    """The files of a version, with the bounds of some columns.

    Args:
        version: None for the newest.
        columns: whose bounds are wanted, in any case of letters.

    Returns:
        None where a file's rows are not simply those that it has, or where its path or partition can't be written down again.
    """
    import pyarrow as pa
    from deltalake.exceptions import DeltaError

    try:
        opened = delta_table(table, version)
        protocol, partitions = opened.protocol(), opened.metadata().partition_columns
        if protocol.min_reader_version > 1 and not (
            protocol.min_reader_version >= _FIRST_WITH_FEATURES
            and set(protocol.reader_features or ()) <= _READABLE
        ):
            return None
        rows = pa.table(opened.get_add_actions(flatten=True))
    except (DeltaError, OSError):
        return None
    # Columns whose names differ only in their case, or a field that is called as another column's part.
    if len({name.lower() for name in rows.column_names}) < rows.num_columns:
        return None
    wanted = {name.lower() for name in columns}
    names = [name.removeprefix("null_count.") for name in rows.column_names if name.startswith("null_count.")]
    bounded = [name for name in names if name.lower() in wanted]
    try:
        listed = plain_rows(rows, bounded)
    except OverflowError:
        return None
    files = [_file(row, partitions, bounded) for row in listed]
    return None if None in files else tuple(file for file in files if file is not None)


def _file(row: Mapping[str, Any], partitions: Sequence[str], bounded: Iterable[str]) -> TableFile | None:
    if not _PLAIN_PATH.fullmatch(row["path"]):
        return None
    values: dict[str, str | None] = {}
    bounds: dict[str, Bounds] = {}
    for name in partitions:
        value = row.get(f"partition.{name}", ...)
        if value is ... or not (value is None or _is_plain_partition(value)):
            return None
        values[name] = None if value is None else str(value)
        same = comparable(value)
        bounds[name.lower()] = Bounds(same, same, int(value is None))
    for name in bounded:
        low, high = comparable(row.get(f"min.{name}")), comparable(row.get(f"max.{name}"))
        if isinstance(row.get(f"max.{name}"), datetime) and isinstance(high, int):
            high += _ROUNDED
        bounds[name.lower()] = Bounds(low, high, row.get(f"null_count.{name}"))
    return TableFile(
        row["path"],
        int(row["size_bytes"]),
        int(row["modification_time"]),
        row.get("num_records"),
        values,
        bounds,
    )


def comparable(value: Any) -> Value | None:
    """A value as bounds are compared; None where its kind is not compared."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | str):
        return value
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        return (moment - _EPOCH) // timedelta(microseconds=1)
    return (value - _EPOCH.date()).days if isinstance(value, date) else None


def _is_plain_partition(value: Any) -> bool:
    if isinstance(value, bool | datetime):
        return False
    # An empty text is written as NULL.
    return isinstance(value, int | date) or (isinstance(value, str) and value != "")
