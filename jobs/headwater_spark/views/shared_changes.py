"""The changed rows of a source that several views of one update read: looked for once, and kept on the driver for all of them.

Files that changed are mostly rows that did not. Each view would read them for itself, and find the same few rows; with these at
hand most views know the keys that are touched without a Spark job.

Decision 0206.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from headwater.incremental.source_changes import SourceChange, changes_between
from headwater.incremental.techniques import Issue
from headwater.storage.place import Place
from headwater_spark.auto_cdc.on_driver.rows import is_atomic
from headwater_spark.views.changed_rows import ChangedRows, column_fields
from headwater_spark.views.known_rows import KnownRows
from headwater_spark.views.plan_surgery import DeltaLeaf, in_session

# More rows than this stay where they are, and so do rows of many columns or bytes: each view reads what it needs of them.
MAX_ROWS, MAX_COLUMNS, MAX_ROW_BYTES = 20_000, 50, 1_000
# Files of few rows are mostly not rows.
SMALL_BYTES = 1_000_000
# From so many views on it pays to read the columns that only some of them use.
SHARING = 2
_FIXED_LENGTH = "__CHAR_VARCHAR_TYPE_STRING"


@dataclass
class _Look:
    """``rows``: None where they are too many, or were not looked for yet."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    done: bool = False
    rows: KnownRows | None = None


class SharedChanges:
    """The changed rows of each source, for the views of one update; they come from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readers: Mapping[Place, int] = {}
        self._columns: frozenset[str] | None = None
        self._looks: dict[tuple[Place, str, int, int], _Look] = {}

    def expect(self, readers: Mapping[Place, int], columns: frozenset[str] | None = None) -> None:
        """Begin with nothing known.

        Args:
            readers: how many views of the update read each table, by its folder; or how often one view does.
            columns: those that they use, None where that is not known yet.
        """
        with self._lock:
            self._readers = dict(readers)
            self._columns = columns
            self._looks = {}

    def is_shared(self, table: Place) -> bool:
        """Whether several views read a table, so that one look is for all of them."""
        return self._readers.get(table, 0) >= SHARING

    def rows(
        self, session: SparkSession, leaf: DeltaLeaf, change: SourceChange, columns: Sequence[str]
    ) -> KnownRows | None:
        """The rows of a source that came or went, in some of its columns; None where each view has to read them itself.

        Args:
            session: in which they are looked for, if nobody has.
            leaf: the table, at the version that is read; ``change``: what its log says of the versions before.
            columns: those that the view uses.

        Raises:
            FilesMissing, FilesUnknown: files that they lie in are gone, or the log does not describe them.
        """
        if not columns or not self.is_shared(leaf.folder):
            return None
        key = (leaf.folder, leaf.table_id, change.first, change.last)
        with self._lock:
            look = self._looks.setdefault(key, _Look())
        with look.lock:
            if not look.done:
                look.rows, look.done = _looked_for(session, leaf, change, self._columns), True
        known = look.rows
        return None if known is None or not known.columns.issuperset(columns) else known.of(columns)


def _looked_for(
    session: SparkSession, leaf: DeltaLeaf, change: SourceChange, columns: frozenset[str] | None
) -> KnownRows | None:
    fields = shareable([one for one in column_fields(leaf) if columns is None or one.name in columns])
    if not fields or not small_rows(change):
        return None
    names = [one.name for one in fields]
    if isinstance(changes_between(leaf.folder, change.first, change.last, names, ""), Issue):
        return None  # a column that only some views use is not what it was
    rows = ChangedRows(session, leaf, change, names).signed().limit(MAX_ROWS + 1)
    table = in_session(rows, session).toArrow()
    return KnownRows(StructType(fields), table) if table.num_rows <= MAX_ROWS else None


def small_rows(change: SourceChange) -> bool:
    """Whether rows are small, as far as the log says: of files that went it may not know how many rows they had."""
    counted = [(size, rows) for size, rows in change.sizes if rows is not None]
    size, rows = sum(size for size, _ in counted), sum(rows for _, rows in counted)
    return change.bytes <= SMALL_BYTES or 0 < size <= MAX_ROW_BYTES * rows


def shareable(fields: Sequence[StructField]) -> list[StructField]:
    """The columns whose values are on the driver what they are in Spark; none where there are too many to read them all."""
    plain = [
        StructField(one.name, one.dataType)
        for one in fields
        if is_atomic(one.dataType) and _FIXED_LENGTH not in (one.metadata or {})
    ]
    return plain if len(plain) <= MAX_COLUMNS else []
