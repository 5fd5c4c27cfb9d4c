"""Rows of a source that changed, on the driver: as Arrow, with how many more of each came than went.

Decision 0206.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

# The column that says of a row how many more of it came than went.
SIGN = "__headwater_sign"


@dataclass(frozen=True)
class KnownRows:
    """Rows of some columns that came (with a positive sign) or went, net, as Arrow."""

    schema: StructType
    table: Any

    @property
    def columns(self) -> frozenset[str]:
        """The names of the columns."""
        return frozenset(self.schema.names)

    def of(self, columns: Sequence[str]) -> KnownRows:
        """One row of each set of rows that are equal in these columns, where more came than went or the reverse."""
        signs = self.table[SIGN].to_pylist()
        # Zero and minus zero have different texts: finer than a grouping, never coarser.
        keys = list(map(repr, zip(*(_values(self.table[name]) for name in columns), strict=True)))
        net: dict[str, int] = {}
        first: dict[str, int] = {}
        for place, (key, sign) in enumerate(zip(keys, signs, strict=True)):
            net[key] = net.get(key, 0) + sign
            first.setdefault(key, place)
        left = [(first[key], count) for key, count in net.items() if count]
        return self._taken(columns, [place for place, _ in left], [count for _, count in left])

    @property
    def gone(self) -> KnownRows:
        """Those that went."""
        signs = self.table[SIGN].to_pylist()
        places = [place for place, sign in enumerate(signs) if sign < 0]
        return self._taken(self.schema.names, places, [signs[place] for place in places])

    def frame(self, session: SparkSession) -> DataFrame | None:
        """The rows as a local relation, without their signs; None where there are none."""
        if not self.table.num_rows:
            return None
        rows = self.table.select(self.schema.names).combine_chunks()
        return session.createDataFrame(rows, self.schema)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def _taken(self, columns: Sequence[str], places: list[int], signs: list[int]) -> KnownRows:
        import pyarrow as pa

        taken = self.table.select(list(columns)).take(pa.array(places, pa.int64()))
        fields = {one.name: one for one in self.schema.fields}
        schema = StructType([fields[name] for name in columns])
        return KnownRows(schema, taken.append_column(SIGN, pa.array(signs, pa.int64())))


def _values(column: Any) -> list[Any]:
    """The values of a column as they are compared: days and times as numbers, since Python knows no years above 9999."""
    import pyarrow as pa

    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return list(column.to_pylist())
