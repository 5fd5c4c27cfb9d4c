"""The files of an opened Delta table as rows of plain values, without the statistics of columns that nobody asks for.

Statistics may have days that Python has no value for (after the year 9999), and of many columns they are most of a log.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deltalake import DeltaTable

_STATISTICS = ("min.", "max.", "null_count.")


def listed_files(opened: DeltaTable) -> list[dict[str, Any]]:
    """Path, size, time, number of rows and partition of each file."""
    import pyarrow as pa

    return plain_rows(pa.table(opened.get_add_actions(flatten=True)), ())


def plain_rows(files: Any, bounded: Collection[str]) -> list[dict[str, Any]]:
    """The same of an Arrow table that lists files.

    Args:
        bounded: the columns whose least and greatest values and counts of NULL are wanted, too.

    Raises:
        OverflowError: one of these values, or of a partition's, is none that Python knows.
    """
    wanted = {kind + name for name in bounded for kind in _STATISTICS}
    names = [name for name in files.column_names if not name.startswith(_STATISTICS) or name in wanted]
    rows: list[dict[str, Any]] = files.select(names).to_pylist()
    return rows
