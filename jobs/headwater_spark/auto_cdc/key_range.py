"""The least and the greatest key of a batch, as literals: with them a merge skips files that have none of its keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import AtomicType, DataType

from headwater_spark.auto_cdc.change_columns import ChangeColumns
from headwater_spark.auto_cdc.literals import encoded, literal
from headwater_spark.plans.names import quoted


@dataclass(frozen=True)
class KeyRange:
    """The range of a batch's keys. ``bounds``: column, least and greatest value, of keys by which files can be skipped."""

    bounds: tuple[tuple[str, Column, Column], ...]

    @classmethod
    def of(cls, columns: ChangeColumns, facts: Any) -> KeyRange:
        """The range in an aggregated row of ``range_facts``."""
        bounds = []
        for number, key in enumerate(columns.keys):
            kind, low = columns.type_of(key), f"low{number}"
            if low in facts and facts[low] is not None:
                bounds.append((key, literal(facts[low], kind), literal(facts[f"high{number}"], kind)))
        return cls(tuple(bounds))

    def condition(self, table: str) -> Column:
        """A condition that all of ``table``'s rows about the batch's keys meet."""
        condition = F.lit(True)
        for key, low, high in self.bounds:
            condition = condition & F.col(quoted(table, key)).between(low, high)
        return condition


def range_facts(columns: ChangeColumns) -> list[Column]:
    """The aggregates that ``KeyRange.of`` reads."""
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
