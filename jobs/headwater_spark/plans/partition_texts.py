"""Texts that a column does not keep which a Delta table is partitioned by: it has NULL in their place."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import CharType, DataType, StringType, VarcharType

from headwater_spark.plans.names import quoted

# The last one is what Hive and Spark call the folder of NULL.
STORED_AS_NULL = ("", "__HIVE_DEFAULT_PARTITION__")


def losing_texts(columns: Iterable[tuple[str, DataType]], partitions: Collection[str]) -> tuple[str, ...]:
    """The names of those columns that are texts and that a table is partitioned by, in any letter case."""
    wanted = {name.lower() for name in partitions}
    texts = (StringType, CharType, VarcharType)
    return tuple(name for name, kind in columns if name.lower() in wanted and isinstance(kind, texts))


def without_lost_texts(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Rows that fail to be computed where one of the columns has such a text: merged by it, it would not be met again."""
    if not columns:
        return rows
    reason = "a row whose partition is {} can't be told from that of NULL: Delta stores both as NULL"
    lost = F.lit(reason.format(" or ".join(map(repr, STORED_AS_NULL))))
    checked = {
        name: F.when(F.col(quoted(name)).isin(*STORED_AS_NULL), F.raise_error(lost)).otherwise(
            F.col(quoted(name))
        )
        for name in columns
    }
    return rows.select(*(checked.get(name, F.col(quoted(name))).alias(name) for name in rows.columns))
