"""A Delta table of plain rows that takes merges, as ``DeltaTable`` of Spark does; see ``plain_rows``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from pyspark.sql.types import StructType
from tests.unit.headwater_spark.plain_columns import Column, Row, lit, or_null
from tests.unit.headwater_spark.plain_rows import Frame


class PlainTable:
    """Rows that change with each merge. ``rows``: with all columns of ``schema``; ``settings``: of the session at each merge."""

    def __init__(self, schema: StructType, rows: Sequence[Row] = (), session: Any = None) -> None:
        self.types = {field.name: field.dataType for field in schema.fields}
        self.rows, self.session = [dict(row) for row in rows], session
        self.settings: list[dict[str, str]] = []

    @property
    def transactions(self) -> list[tuple[str, int]]:
        """The id and the number of the batch that each merge was committed under; a merge without them fails here."""
        names = ("txnAppId", "txnVersion")
        pairs = ([now[f"spark.databricks.delta.write.{name}"] for name in names] for now in self.settings)
        return [(application, int(number)) for application, number in pairs]

    @property
    def copied(self) -> list[bool]:
        """Whether Delta was to copy the source of each merge, since it may give other rows when it is read again."""
        return [now.get("spark.databricks.delta.merge.materializeSource") != "none" for now in self.settings]

    def toDF(self) -> Frame:  # noqa: N802 - Spark's name
        return Frame(map(dict, self.rows), list(self.types), types=dict(self.types), session=self.session)

    def alias(self, _: str) -> Self:
        return self

    def merge(self, source: Frame, on: Column) -> PlainMerge:
        """``source``: with the alias ``s``; the table's own rows are ``t``."""
        return PlainMerge(self, source, on)


class PlainMerge:
    """Clauses in the order in which they are tried."""

    def __init__(self, table: PlainTable, source: Frame, on: Column) -> None:
        self._table, self._source, self._on = table, source, on
        self._matched: list[tuple[Column, Mapping[str, Column] | None]] = []
        self._inserts: list[tuple[Column, Mapping[str, Column]]] = []
        self._left: list[Column] = []

    def withSchemaEvolution(self) -> Self:  # noqa: N802 - Spark's names
        return self

    def whenMatchedDelete(self, condition: Column | None = None) -> Self:  # noqa: N802
        self._matched.append((lit(True) if condition is None else condition, None))
        return self

    def whenMatchedUpdate(self, condition: Column | None = None, *, set: Mapping[str, Column]) -> Self:  # noqa: N802, A002
        self._matched.append((lit(True) if condition is None else condition, set))
        return self

    def whenNotMatchedInsert(self, condition: Column | None = None, *, values: Mapping[str, Column]) -> Self:  # noqa: N802
        self._inserts.append((lit(True) if condition is None else condition, values))
        return self

    def whenNotMatchedBySourceDelete(self, condition: Column) -> Self:  # noqa: N802
        self._left.append(condition)
        return self

    def execute(self) -> None:
        """Change the table; fails where several rows of the source would change one row, as Delta does."""
        self._table.settings.append(dict(self._source.session.conf.now))
        rows, met = list[Row](), list[Row]()
        for row in self._table.rows:
            pairs = [
                {"t": row, "s": new} for new in self._source.rows if self._on.of({"t": row, "s": new}) is True
            ]
            met += [pair["s"] for pair in pairs]
            acting = [(pair, act) for pair in pairs for act in [self._act(pair)] if act is not _NOTHING]
            assert len(acting) < 2, f"several rows of the source change {row}"
            if acting:
                (pair, values) = acting[0]
                rows += [] if values is None else [{**row, **_given(values, pair)}]
            elif pairs or not any(condition.of({"t": row}) is True for condition in self._left):
                rows.append(row)
        for new in self._source.rows:
            if not any(new is one for one in met):
                pair = {"t": dict.fromkeys(self._table.types), "s": new}
                rows += [_given(values, pair) for wanted, values in self._inserts if wanted.of(pair) is True]
        self._table.rows = [{name: row.get(name) for name in self._table.types} for row in rows]

    def _act(self, pair: Row) -> Any:
        return next((values for wanted, values in self._matched if wanted.of(pair) is True), _NOTHING)


_NOTHING = object()


def _given(values: Mapping[str, Column], pair: Row) -> Row:
    return {name.strip("`"): or_null(column.of(pair)) for name, column in values.items()}
