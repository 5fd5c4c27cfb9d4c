"""The least and the greatest key of a batch, as literals: with them a merge skips files that hold none of its keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import AtomicType, DataType

from headwater_spark.auto_cdc.change_columns import ChangeColumns
from headwater_spark.auto_cdc.literals import encoded, literal

_LOW, _HIGH = "low", "high"


@dataclass(frozen=True)
class KeyRange:
    """Where the first key of a batch's rows lies; ``bounds`` is None where files can't be skipped by it."""

    key: str
    bounds: tuple[Column, Column] | None

    @classmethod
    def of(cls, columns: ChangeColumns, found: Any) -> KeyRange:
        """The range in the row that ``range_facts`` were aggregated to."""
        key, kind = columns.keys[0], columns.type_of(columns.keys[0])
        known = _LOW in found and found[_LOW] is not None
        return cls(key, (literal(found[_LOW], kind), literal(found[_HIGH], kind)) if known else None)

    def meets(self, table: str) -> Column:
        """A condition that all of ``table``'s rows about the batch's keys meet."""
        if self.bounds is None:
            return F.lit(True)
        return F.col(f"{table}.`{self.key}`").between(*self.bounds)


def range_facts(columns: ChangeColumns) -> list[Column]:
    """The aggregates that a KeyRange is made of."""
    kind = columns.type_of(columns.keys[0])
    if not _has_statistics(kind):
        return []
    key = F.col(f"`{columns.keys[0]}`")
    return [encoded(F.min(key), kind).alias(_LOW), encoded(F.max(key), kind).alias(_HIGH)]


def _has_statistics(kind: DataType) -> bool:
    # Files are skipped by the least and greatest value of a column, which Delta keeps for plain types.
    return isinstance(kind, AtomicType) and kind.typeName() not in ("binary", "boolean", "variant")
