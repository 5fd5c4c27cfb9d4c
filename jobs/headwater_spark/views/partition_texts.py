"""Views that are partitioned by a text: Delta has the empty text as NULL there, so that a table knows less than its query says.

Rows of the two are one part of the view, that is replaced together; groups of the two can't be told apart, and are not merged.

Decision 0210.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headwater.storage.delta_tables import delta_table
from headwater.storage.place import Place
from headwater_spark.plans.names import quoted


def stored_alike(keys: Iterable[tuple[object, ...]], texts: Sequence[bool]) -> list[tuple[object, ...]]:
    """Keys, with NULL beside each empty text and the reverse; ``texts``: which of their values a table is partitioned by."""
    both: dict[tuple[object, ...], None] = {}
    for key in keys:
        alike = [one in (None, "") and is_text for one, is_text in zip(key, texts, strict=True)]
        both[key] = None
        if any(alike):
            both |= {_with(key, alike, other): None for other in (None, "")}
    return list(both)


def _with(key: tuple[object, ...], places: Sequence[bool], value: object) -> tuple[object, ...]:
    return tuple(value if chosen else one for one, chosen in zip(key, places, strict=True))


def has_null_partition(table: Place, columns: Collection[str]) -> bool:
    """Whether a table may have rows with NULL in one of the columns that it is partitioned by."""
    import pyarrow as pa

    files = pa.table(delta_table(table).get_add_actions(flatten=True))
    wanted = {f"partition.{name.lower()}" for name in columns}
    return any(files[name].null_count > 0 for name in files.column_names if name.lower() in wanted)


def without_empty(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Rows that fail where one of the columns has an empty text: the view is recomputed then."""
    if not columns:
        return rows
    reason = F.lit("a group whose partition is an empty text can't be told from that of NULL")
    checked = {
        name: F.when(F.col(quoted(name)) == "", F.raise_error(reason)).otherwise(F.col(quoted(name)))
        for name in columns
    }
    return rows.select(*(checked.get(name, F.col(quoted(name))).alias(name) for name in rows.columns))
