"""Views that are partitioned by a text: Delta has two texts as NULL there, so that a table knows less than its query says.

Rows of the three are one part of the view, that is replaced together; groups of them can't be told apart, and are not merged.

Decision 0210.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import product

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headwater.storage.delta_tables import delta_table
from headwater.storage.place import Place
from headwater_spark.plans.names import quoted

# The last one is what Hive and Spark call the folder of NULL.
_STORED_AS_NULL = (None, "", "__HIVE_DEFAULT_PARTITION__")


def stored_alike(keys: Iterable[tuple[object, ...]], texts: Sequence[bool]) -> list[tuple[object, ...]]:
    """Keys, with all that are the same ones in the table; ``texts``: which of their values are texts that it is partitioned by."""
    alike: dict[tuple[object, ...], None] = {}
    for key in keys:
        alike[key] = None
        choices = [
            _STORED_AS_NULL if is_text and one in _STORED_AS_NULL else (one,)
            for one, is_text in zip(key, texts, strict=True)
        ]
        alike |= dict.fromkeys(product(*choices))
    return list(alike)


def has_null_partition(table: Place, columns: Collection[str]) -> bool:
    """Whether a table may have rows with NULL in one of the columns that it is partitioned by."""
    import pyarrow as pa

    files = pa.table(delta_table(table).get_add_actions(flatten=True))
    wanted = {f"partition.{name.lower()}" for name in columns}
    return any(files[name].null_count > 0 for name in files.column_names if name.lower() in wanted)


def without_empty(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Rows that fail where one of the columns has a text that is stored as NULL: the view is recomputed then."""
    if not columns:
        return rows
    reason = F.lit("a group whose partition is a text that is stored as NULL can't be told from that of NULL")
    checked = {
        name: F.when(F.col(quoted(name)).isin(*_STORED_AS_NULL[1:]), F.raise_error(reason)).otherwise(
            F.col(quoted(name))
        )
        for name in columns
    }
    return rows.select(*(checked.get(name, F.col(quoted(name))).alias(name) for name in rows.columns))
