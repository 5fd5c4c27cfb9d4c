"""Spark's frames over plain rows, as far as decisions about rows need them: no JVM, no optimiser.

``plain_functions`` puts these, and the columns of ``plain_columns``, in the place of Spark's in the modules under test. That Spark
gives the same is for tests/integration: test_no_optimiser_skips_a_rule.py, test_rules_are_applied_to_frames.py and
test_change_events_converge.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any, Self

import pytest
from pyspark.sql.types import DataType, LongType, StructField, StructType
from tests.unit.headwater_spark import plain_columns
from tests.unit.headwater_spark.plain_aggregates import AGGREGATES
from tests.unit.headwater_spark.plain_columns import (
    Column,
    Raised,
    Row,
    as_column,
    col,
    lit,
    or_null,
    order_of,
)

__all__ = ["Column", "Frame", "Raised", "Row", "Window", "col", "lit", "plain_functions", "window_rows"]
# What stands for ``pyspark.sql.functions``.
FUNCTIONS = SimpleNamespace(
    **{name: one for name, one in vars(plain_columns).items() if callable(one)}, **AGGREGATES
)


class Window:
    """A partition and an order; the frame that evaluates it gives it the rows (``rows``)."""

    rows: Sequence[Row] = ()

    def __init__(self, keys: Sequence[Column | str], order: Sequence[Column | str] = ()) -> None:
        self._keys, self._order = list(map(as_column, keys)), list(map(as_column, order))

    @classmethod
    def partitionBy(cls, *keys: Column | str) -> Window:  # noqa: N802
        return cls(keys)

    def orderBy(self, *order: Column | str) -> Window:  # noqa: N802
        return Window(self._keys, order)

    def around(self, row: Row, *, by_peers: bool = False) -> tuple[list[Row], int]:
        """The rows of the row's partition in their order, NULL first, and its place among them."""

        def key(one: Row) -> list[Any]:
            return [or_null(column.of(one)) for column in self._keys]

        def order(one: Row) -> list[Any]:
            return [order_of(or_null(column.of(one))) for column in self._order]

        group = sorted((one for one in Window.rows if key(one) == key(row)), key=order)
        alike = [order(one) == order(row) if by_peers else one is row for one in group]
        return group, alike.index(True)


def window_rows(rows: Sequence[Row]) -> None:
    """Let windows look at these rows."""
    Window.rows = rows


class Frame:
    """Rows with the names of their columns. ``tables``: what the session reads, by path.

    ``fields``: of columns that are structs, as far as they were made here. Under the name of an alias a row has itself.
    """

    isStreaming = False  # noqa: N815

    def __init__(
        self,
        rows: Iterable[Row],
        columns: Sequence[str],
        tables: dict[str, Frame] | None = None,
        types: dict[str, DataType] | None = None,
        session: Any = None,
    ) -> None:
        self.rows, self.columns, self.tables = list(rows), list(columns), tables or {}
        self.types, self.session = types or {}, session
        self.fields: dict[str, tuple[str, ...]] = {}
        self.aliases: tuple[str, ...] = ()
        self.kept = 0
        self.observed: dict[str, Any] = {}

    @property
    def schema(self) -> StructType:
        return StructType([StructField(name, self.types.get(name, LongType())) for name in self.columns])

    @property
    def sparkSession(self) -> Any:  # noqa: N802
        if self.session is not None:
            return self.session
        reader = SimpleNamespace(load=lambda path: self.tables[path])
        return SimpleNamespace(read=SimpleNamespace(format=lambda _: reader))

    def _with(self, rows: Iterable[Row], columns: Sequence[str], *others: Frame) -> Frame:
        made = Frame(rows, columns, self.tables, self.types, self.session)
        made.observed = self.observed
        for other in (*others, self):
            made.fields |= other.fields
            made.types = {**made.types, **other.types}
            made.aliases += other.aliases
        return made

    def alias(self, name: str) -> Frame:
        made = self._with([{**row, name: row} for row in self.rows], self.columns)
        made.aliases = (*self.aliases, name)
        return made

    def withColumn(self, name: str, column: Column) -> Frame:  # noqa: N802
        return self.withColumns({name: column})

    def withColumns(self, columns: dict[str, Column]) -> Frame:  # noqa: N802
        named = [column.alias(name) for name, column in columns.items()]
        pairs = zip(self.rows, self._values(named), strict=True)
        rows = _exploded([{**row, **more} for row, more in pairs], named)
        made = self._with(rows, [*self.columns, *(name for name in columns if name not in self.columns)])
        made.fields |= {name: column.fields for name, column in columns.items()}
        return made

    def _values(self, columns: Sequence[Column]) -> list[Row]:
        window_rows(self.rows)
        return [{column.name: or_null(column.of(row)) for column in columns} for row in self.rows]

    def where(self, condition: Column | str) -> Frame:
        met = as_column(condition)
        return self._with([row for row in self.rows if met.of(row) is True], self.columns)

    def select(self, *columns: Column | str) -> Frame:
        wanted = [one for place, column in enumerate(columns) for one in self._named(column, place)]
        rows = _exploded(self._values(wanted), wanted)
        made = self._with(rows, [column.name for column in wanted])
        made.fields = {column.name: column.fields or self.fields.get(column.name, ()) for column in wanted}
        made.aliases = ()
        return made

    def _named(self, column: Column | str, place: int) -> Iterable[Column]:
        """Columns of a selection; one that nobody named has its place for a name."""
        if isinstance(column, Column):
            return [column if column.name else column.alias(f"column {place}")]
        if column == "*":
            return [col(f"`{name}`") for name in self.columns]
        if column.endswith(".*"):
            name = column.removesuffix(".*")
            return [col(f"{name}.`{field}`") for field in self.fields[name]]
        return [col(f"`{column}`") if column in self.columns else col(column)]

    def drop(self, *names: str) -> Frame:
        rows = [{name: value for name, value in row.items() if name not in names} for row in self.rows]
        return self._with(rows, [name for name in self.columns if name not in names])

    def _own(self, row: Row) -> Row:
        return {name: row[name] for name in self.columns}

    def distinct(self) -> Frame:
        unique: list[Row] = []
        for row in self.rows:
            if self._own(row) not in map(self._own, unique):
                unique.append(row)
        return self._with(unique, self.columns)

    def dropDuplicates(self, names: Sequence[str]) -> Frame:  # noqa: N802
        """A row of each set that is equal in these columns."""
        seen: list[list[Any]] = []
        rows = []
        for row in self.rows:
            if (key := [row[name] for name in names]) not in seen:
                seen.append(key)
                rows.append(row)
        return self._with(rows, self.columns)

    def limit(self, number: int) -> Frame:
        return self._with(self.rows[:number], self.columns)

    def coalesce(self, _: int) -> Frame:
        return self

    def localCheckpoint(self) -> Frame:  # noqa: N802
        return self

    def union(self, other: Frame) -> Frame:
        """By the places of columns."""
        renamed = [
            dict(zip(self.columns, (row[name] for name in other.columns), strict=True)) for row in other.rows
        ]
        return self.unionByName(Frame(renamed, self.columns))

    def unionByName(self, other: Frame, *, allowMissingColumns: bool = False) -> Frame:  # noqa: N802, N803
        columns = list(dict.fromkeys([*self.columns, *(other.columns if allowMissingColumns else ())]))
        assert allowMissingColumns or set(columns) == set(other.columns)
        rows = [{name: row.get(name) for name in columns} for row in (*self.rows, *other.rows)]
        made = self._with(rows, columns, other)
        made.aliases = ()
        return made

    def join(self, other: Frame, on: Column | str | Sequence[Any], how: str = "inner") -> Frame:
        """By conditions, or by columns that both have."""
        parts = [on] if isinstance(on, Column | str) else list(on)
        names = [part for part in parts if isinstance(part, str)]
        conditions = [part for part in parts if isinstance(part, Column)]
        assert how in ("inner", "left", "left_semi", "left_anti", "full", "full_outer"), how

        def fits(left: Row, right: Row) -> bool:
            same = all(left[name] is not None and left[name] == right[name] for name in names)
            return same and all(one.of({**right, **left}) is True for one in conditions)

        pairs = [(left, right) for left in self.rows for right in other.rows if fits(left, right)]
        met = [id(left) for left, _ in pairs]
        if how in ("left_semi", "left_anti"):
            return self._with(
                [row for row in self.rows if (id(row) in met) is (how == "left_semi")], self.columns
            )
        rows = [{**right, **left} for left, right in pairs]
        if how != "inner":
            rows += [{**_nothing(other), **row} for row in self.rows if id(row) not in met]
        if how.startswith("full"):
            met = [id(right) for _, right in pairs]
            rows += [{**_nothing(self), **row} for row in other.rows if id(row) not in met]
        return self._with(rows, list(dict.fromkeys([*names, *self.columns, *other.columns])), other)

    def groupBy(self, *keys: Column | str) -> _Groups:  # noqa: N802
        return _Groups(self, [one for place, key in enumerate(keys) for one in self._named(key, place)])

    def agg(self, *columns: Column) -> Frame:
        named = [column if column.name else column.alias(f"column {n}") for n, column in enumerate(columns)]
        return self._with([_totals(self.rows, named)], [column.name for column in named])

    def observe(self, name: Any, *columns: Column) -> Frame:
        self.observed[str(name)] = _totals(self.rows, columns)
        return self

    def persist(self, _: Any = None) -> Frame:
        self.kept += 1
        return self

    def unpersist(self) -> Frame:
        self.kept -= 1
        return self

    def count(self) -> int:
        return len(self.rows)

    def isEmpty(self) -> bool:  # noqa: N802
        return not self.rows

    def collect(self) -> list[Any]:
        return [_Record(self._own(row)) for row in self.rows]

    def first(self) -> Any:
        return next(iter(self.collect()), None)


class _Groups:
    def __init__(self, frame: Frame, keys: Sequence[Column]) -> None:
        self._frame, self._keys = frame, keys

    def agg(self, *columns: Column) -> Frame:
        frame, groups = self._frame, dict[str, list[Row]]()
        heads = frame._values(self._keys)
        for row, head in zip(frame.rows, heads, strict=True):
            groups.setdefault(json.dumps(head, default=str), []).append({**row, **head})
        names = [key.name for key in self._keys]
        rows = [
            {**{name: group[0][name] for name in names}, **_totals(group, columns)}
            for group in groups.values()
        ]
        made = frame._with(rows, [*names, *(column.name for column in columns)])
        made.fields |= {column.name: column.fields for column in columns}
        made.aliases = ()
        return made

    def count(self) -> Frame:
        return self.agg(Column(lambda _: None, "count", over_all=len))


def _exploded(rows: list[Row], columns: Sequence[Column]) -> list[Row]:
    for column in columns:
        if column.explodes:
            rows = [{**row, column.name: value} for row in rows for value in row[column.name] or ()]
    return rows


def _nothing(frame: Frame) -> Row:
    return dict.fromkeys([*frame.columns, *frame.aliases])


class _Record(tuple[Any, ...]):  # noqa: SLOT001 - it has a name for its row
    row: Row

    def __new__(cls, row: Row) -> Self:
        made = super().__new__(cls, row.values())
        made.row = row
        return made

    def __getitem__(self, item: Any) -> Any:
        return self.row[item] if isinstance(item, str) else super().__getitem__(item)

    def __contains__(self, item: object) -> bool:
        return item in self.row

    def asDict(self) -> Row:  # noqa: N802
        return dict(self.row)


def _totals(rows: Sequence[Row], columns: Sequence[Column]) -> Row:
    return {column.name: column.over_all(rows) for column in columns if column.over_all is not None}


def plain_functions(monkeypatch: pytest.MonkeyPatch, *modules: ModuleType) -> None:
    """Let modules build columns of plain rows."""
    instead = {"F": FUNCTIONS, "Window": Window, "Column": Column}
    for module in modules:
        for name in instead.keys() & vars(module).keys():
            monkeypatch.setattr(module, name, instead[name])
        if hasattr(module, "use_exact_counts"):  # plain rows have no session
            monkeypatch.setattr(module, "use_exact_counts", lambda _: None)
