"""The least and the greatest key of a batch, as literals: with them a merge skips files that hold none of its keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import AtomicType, DataType

from headwater_spark.auto_cdc.change_columns import ChangeColumns, quoted
from headwater_spark.auto_cdc.literals import encoded, literal


@dataclass(frozen=True)
class KeyRange:
    """Where the keys of a batch's rows lie, key by key. ``bounds`` has those by which files can be skipped."""

    bounds: tuple[tuple[str, Column, Column], ...]

    @classmethod
    def of(cls, columns: ChangeColumns, found: Any) -> KeyRange:
        """The range in the row that ``range_facts`` were aggregated to."""
        bounds = []
        for number, key in enumerate(columns.keys):
            kind, low = columns.type_of(key), f"low{number}"
            if low in found and found[low] is not None:
                bounds.append((key, literal(found[low], kind), literal(found[f"high{number}"], kind)))
        return cls(tuple(bounds))

    def meets(self, table: str) -> Column:
        """A condition that all of ``table``'s rows about the batch's keys meet."""
        whole = F.lit(True)
        for key, low, high in self.bounds:
            whole = whole & F.col(quoted(table, key)).between(low, high)
        return whole


def range_facts(columns: ChangeColumns) -> list[Column]:
    """The aggregates that a KeyRange is made of."""
    facts = []
    for number, key in enumerate(columns.keys):
        kind, value = columns.type_of(key), F.col(quoted(key))
        if _has_statistics(kind):
            facts += [
                encoded(F.min(value), kind).alias(f"low{number}"),
                encoded(F.max(value), kind).alias(f"high{number}"),
            ]
    return facts


def _has_statistics(kind: DataType) -> bool:
    # Files are skipped by the least and greatest value of a column, which Delta keeps for plain types.
    return isinstance(kind, AtomicType) and kind.typeName() not in ("binary", "boolean", "variant")
