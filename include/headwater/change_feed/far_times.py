"""Times that delta-rs would read as others: refused, not passed on.

In Parquet's old form of times (INT96, which other writers' sessions of Spark have by default) they are read as nanoseconds, so 9999-12-31
comes out as a day of 1816. Decision 0262.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from urllib.parse import unquote

from headwater.change_feed.change_range import ChangeRange
from headwater.delta_log.kept_values import files_with_far_times
from headwater.errors import ChangeFeedBroken
from headwater.storage.delta_tables import delta_table
from headwater.storage.place import Place


def refuse_far_times(table: Place, changes: ChangeRange) -> None:
    """Raise ChangeFeedBroken where a file that the range added or removed has such times in the old form.

    Only what the log says about the least and the greatest value of a file is known: times within arrays, and in files that it says
    nothing about, pass.
    """
    from deltalake.exceptions import DeltaError

    files = files_with_far_times(delta_table(table, version=changes.end_version))
    if not changes.snapshot and changes.start_version > 0:
        with suppress(DeltaError, OSError):  # a log that no longer has it: what was removed is not known
            before = files_with_far_times(delta_table(table, version=changes.start_version - 1))
            files = {
                path: column
                for path, column in (files | before).items()
                if (path in files) != (path in before)
            }
    for path, column in files.items():
        if column in _old_columns(table / unquote(path)):
            raise ChangeFeedBroken(
                f"{column!r} of {changes.table} has times before 1678 or after 2261 in Parquet's old form (INT96), which would be read "
                "as others without Spark.",
                where=table / unquote(path),
                remedy='Read them with `form="spark"`. Or write the table anew with `spark.sql.parquet.outputTimestampType=TIMESTAMP_MICROS`, '
                "and start again from its content.",
            )


def _old_columns(file: Place) -> Iterable[str]:
    """The columns of a file whose times are in the old form; none where there is no such file."""
    import pyarrow.parquet as pq

    try:
        with file.open("rb") as opened:
            schema = pq.ParquetFile(opened).schema
            columns = [schema.column(number) for number in range(len(schema))]
            return [column.path for column in columns if column.physical_type == "INT96"]
    except FileNotFoundError:
        return []
