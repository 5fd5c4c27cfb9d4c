"""Spark's columns and frames over plain rows, as far as decisions about rows need them: no JVM, no optimiser.

``plain_functions`` puts this module in the place of ``pyspark.sql.functions`` in the modules under test. NULL is None, with
SQL's three-valued logic. The text of a rule (``expr``) is the name of a column that says what the rule gives. That Spark
gives the same is for tests/integration: test_no_optimiser_skips_a_rule.py and test_rules_are_applied_to_frames.py.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any, Self

import pytest
from pyspark.sql.types import DataType, LongType, StructField, StructType

Row = dict[str, Any]


class Raised(Exception):
    """What ``raise_error`` throws; the text as Spark's."""


@dataclass(frozen=True, eq=False)
class Column:  # noqa: PLW1641 - no Column of Spark's has a hash to count on either
    """``of``: the value for a row of a frame; ``over_all``: for all rows (an aggregate)."""

    of: Callable[[Row], Any]
    name: str = ""
    over_all: Callable[[Sequence[Row]], Any] | None = None

    def alias(self, name: str) -> Column:
        return Column(self.of, name, self.over_all)

    def cast(self, kind: str) -> Column:
        assert kind in ("bigint", "binary", "boolean", "int", "string", "timestamp")
        return self

    def __and__(self, other: Column) -> Column:
        def both(row: Row) -> bool | None:
            left, right = self.of(row), other.of(row)
            return False if left is False or right is False else _null(left, right, lambda: True)

        return Column(both)

    def __or__(self, other: Column) -> Column:
        def either(row: Row) -> bool | None:
            left, right = self.of(row), other.of(row)
            return True if left is True or right is True else _null(left, right, lambda: False)

        return Column(either)

    def __invert__(self) -> Column:
        return Column(lambda row: _null(value := self.of(row), True, lambda: not value))

    def __eq__(self, other: object) -> Column:  # type: ignore[override]
        return _binary(self, other, lambda one, two: one == two)

    def __ne__(self, other: object) -> Column:  # type: ignore[override]
        return _binary(self, other, lambda one, two: one != two)

    def __gt__(self, other: object) -> Column:
        return _binary(self, other, lambda one, two: one > two)

    def __lt__(self, other: object) -> Column:
        return _binary(self, other, lambda one, two: one < two)

    def __le__(self, other: object) -> Column:
        return _binary(self, other, lambda one, two: one <= two)

    def __add__(self, other: object) -> Column:
        return _binary(self, other, lambda one, two: one + two)

    def bitwiseAND(self, other: Column) -> Column:  # noqa: N802 - Spark's name
        return _binary(self, other, lambda one, two: one & two)

    def bitwiseOR(self, other: Column) -> Column:  # noqa: N802
        return _binary(self, other, lambda one, two: one | two)

    def isNull(self) -> Column:  # noqa: N802
        return Column(lambda row: self.of(row) is None)

    def isNotNull(self) -> Column:  # noqa: N802
        return Column(lambda row: self.of(row) is not None)

    def eqNullSafe(self, other: Column) -> Column:  # noqa: N802
        return Column(lambda row: self.of(row) == other.of(row))

    def isin(self, *values: Any) -> Column:
        return Column(lambda row: _null(value := self.of(row), True, lambda: value in values))

    def otherwise(self, other: Column | Any) -> Column:
        rest = other if isinstance(other, Column) else lit(other)
        return Column(lambda row: self.of(row) if self.of(row) is not _NO_BRANCH else rest.of(row))

    def over(self, window: Window) -> Column:
        """The rank of a row within its partition (``row_number``)."""
        return Column(lambda row: window.place(row), over_all=None)


class _Nothing:
    def __repr__(self) -> str:
        return "no branch"


_NO_BRANCH = _Nothing()


def _null(left: Any, right: Any, value: Callable[[], Any]) -> Any:
    return None if left is None or right is None else value()


def _binary(left: Column, right: object, how: Callable[[Any, Any], Any]) -> Column:
    other = right if isinstance(right, Column) else lit(right)

    def value(row: Row) -> Any:
        one, two = left.of(row), other.of(row)
        return _null(one, two, lambda: how(one, two))

    return Column(value)


def lit(value: Any) -> Column:
    return Column(lambda _: value, str(value))


def col(name: str) -> Column:
    """A column by its name, in backticks or not; ``a.b``: a field of a struct."""
    matches = re.findall(r"`((?:[^`]|``)+)`|([^.`]+)", name)
    parts = [quoted.replace("``", "`") or plain for quoted, plain in matches]

    def within(value: Any, part: str) -> Any:
        return None if value is None else value[part]  # a field of NULL is NULL

    return Column(lambda row: functools.reduce(within, parts, row), parts[-1])


def expr(text: str) -> Column:
    """What a SQL text gives is in the row's column of that name."""
    return Column(lambda row: row[text], text)


def when(condition: Column, value: Any) -> Column:
    chosen = value if isinstance(value, Column) else lit(value)
    return Column(lambda row: chosen.of(row) if condition.of(row) is True else _NO_BRANCH)


def coalesce(*columns: Column) -> Column:
    return Column(lambda row: next((v for c in columns if (v := c.of(row)) is not None), None))


def array(*columns: Column) -> Column:
    return Column(lambda row: [_or_null(column.of(row)) for column in columns])


def _or_null(value: Any) -> Any:
    return None if value is _NO_BRANCH else value


def array_compact(column: Column) -> Column:
    return Column(lambda row: [value for value in column.of(row) if value is not None])


def filter(column: Column, keep: Callable[[Column, Column], Column]) -> Column:  # noqa: A001 - Spark's name
    return Column(
        lambda row: [v for place, v in enumerate(column.of(row)) if keep(lit(v), lit(place)).of(row)]
    )


def bit_get(column: Column, place: Column) -> Column:
    return _binary(column, place, lambda bits, number: bits >> number & 1)


def concat(*columns: Column) -> Column:
    def value(row: Row) -> Any:
        parts = [column.of(row) for column in columns]
        return functools.reduce(lambda one, two: one + two, parts)

    return Column(value)


def struct(*columns: Column) -> Column:
    return Column(lambda row: {column.name: _or_null(column.of(row)) for column in columns})


def to_json(column: Column, options: Any = None) -> Column:
    return Column(lambda row: json.dumps(column.of(row), default=str))


def length(column: Column) -> Column:
    return Column(lambda row: _null(text := column.of(row), True, lambda: len(text)))


def raise_error(column: Column) -> Column:
    def value(row: Row) -> Any:
        raise Raised(column.of(row))

    return Column(value)


def array_join(column: Column, between: str) -> Column:
    return Column(lambda row: between.join(column.of(row)))


def uuid() -> Column:
    return lit("an id")


def current_timestamp() -> Column:
    return lit("now")


def count(column: Column) -> Column:
    return Column(lambda _: None, over_all=lambda rows: sum(1 for row in rows if column.of(row) is not None))


def count_if(column: Column) -> Column:
    return Column(lambda _: None, over_all=lambda rows: sum(1 for row in rows if column.of(row) is True))


class _Rank:
    def over(self, window: Window) -> Column:
        return Column(window.place)


def row_number() -> _Rank:
    return _Rank()


class Window:
    """A partition and an order; the frame that evaluates it gives it the rows (``rows``)."""

    rows: Sequence[Row] = ()

    def __init__(self, keys: Sequence[Column], order: Sequence[Column] = ()) -> None:
        self._keys, self._order = keys, order

    @classmethod
    def partitionBy(cls, *keys: Column) -> Window:  # noqa: N802
        return cls(keys)

    def orderBy(self, *order: Column) -> Window:  # noqa: N802
        return Window(self._keys, order)

    def place(self, row: Row) -> int:
        """The number of the row in its partition, from 1; NULL comes first."""

        def key(one: Row) -> list[Any]:
            return [column.of(one) for column in self._keys]

        def order(one: Row) -> list[Any]:
            values = [column.of(one) for column in self._order]
            return [(value is not None, value if value is not None else 0) for value in values]

        group = [one for one in Window.rows if key(one) == key(row)]
        places = sorted(range(len(group)), key=lambda index: order(group[index]))
        return 1 + [group[index] is row for index in places].index(True)


class Frame:
    """Rows with the names of their columns. ``tables``: what the session reads, by path."""

    isStreaming = False  # noqa: N815

    def __init__(
        self,
        rows: Iterable[Row],
        columns: Sequence[str],
        tables: dict[str, Frame] | None = None,
        types: dict[str, DataType] | None = None,
    ) -> None:
        self.rows, self.columns, self.tables = list(rows), list(columns), tables or {}
        self.types = types or {}
        self.kept = 0
        self.observed: dict[str, Any] = {}

    @property
    def schema(self) -> StructType:
        return StructType([StructField(name, self.types.get(name, LongType())) for name in self.columns])

    @property
    def sparkSession(self) -> Any:  # noqa: N802
        reader = SimpleNamespace(load=lambda path: self.tables[path])
        return SimpleNamespace(read=SimpleNamespace(format=lambda _: reader))

    def _with(self, rows: Iterable[Row], columns: Sequence[str]) -> Frame:
        made = Frame(rows, columns, self.tables, self.types)
        made.observed = self.observed
        return made

    def withColumn(self, name: str, column: Column) -> Frame:  # noqa: N802
        return self.withColumns({name: column})

    def withColumns(self, columns: dict[str, Column]) -> Frame:  # noqa: N802
        Window.rows = self.rows
        values = [{name: _or_null(column.of(row)) for name, column in columns.items()} for row in self.rows]
        rows = [{**row, **more} for row, more in zip(self.rows, values, strict=True)]
        return self._with(rows, [*self.columns, *(name for name in columns if name not in self.columns)])

    def where(self, condition: Column) -> Frame:
        return self._with([row for row in self.rows if condition.of(row) is True], self.columns)

    def select(self, *columns: Column | str) -> Frame:
        wanted = [_named(column, place) for place, column in enumerate(columns)]
        rows = [{column.name: _or_null(column.of(row)) for column in wanted} for row in self.rows]
        return self._with(rows, [column.name for column in wanted])

    def drop(self, *names: str) -> Frame:
        rows = [{name: value for name, value in row.items() if name not in names} for row in self.rows]
        return self._with(rows, [name for name in self.columns if name not in names])

    def distinct(self) -> Frame:
        unique: list[Row] = []
        for row in self.rows:
            if row not in unique:
                unique.append(row)
        return self._with(unique, self.columns)

    def limit(self, number: int) -> Frame:
        return self._with(self.rows[:number], self.columns)

    def join(self, other: Frame, condition: Column, how: str) -> Frame:
        assert how == "left"
        rows = []
        for row in self.rows:
            pairs = [{**row, **match} for match in other.rows if condition.of({**row, **match}) is True]
            rows += pairs or [{**row, **dict.fromkeys(other.columns)}]
        return self._with(rows, [*self.columns, *other.columns])

    def agg(self, *columns: Column) -> Frame:
        return self._with([_totals(self.rows, columns)], [column.name for column in columns])

    def observe(self, name: Any, *columns: Column) -> Frame:
        self.observed[str(name)] = _totals(self.rows, columns)
        return self

    def persist(self, _: Any = None) -> Frame:
        self.kept += 1
        return self

    def unpersist(self) -> Frame:
        self.kept -= 1
        return self

    def collect(self) -> list[Any]:
        return [_Record(row) for row in self.rows]


def _named(column: Column | str, place: int) -> Column:
    """A column of a selection; one that nobody named has its place for a name."""
    if isinstance(column, str):
        return col(f"`{column}`")
    return column if column.name else column.alias(f"column {place}")


class _Record(tuple[Any, ...]):  # noqa: SLOT001 - it has a name for its row
    row: Row

    def __new__(cls, row: Row) -> Self:
        made = super().__new__(cls, row.values())
        made.row = row
        return made

    def asDict(self) -> Row:  # noqa: N802
        return dict(self.row)


def _totals(rows: Sequence[Row], columns: Sequence[Column]) -> Row:
    return {column.name: column.over_all(rows) for column in columns if column.over_all is not None}


def plain_functions(monkeypatch: pytest.MonkeyPatch, *modules: ModuleType) -> None:
    """Let modules build columns of plain rows."""
    here = __import__("sys").modules[__name__]
    for module in modules:
        monkeypatch.setattr(module, "F", here)
        if hasattr(module, "Window"):
            monkeypatch.setattr(module, "Window", Window)
        if hasattr(module, "use_exact_counts"):  # plain rows have no session
            monkeypatch.setattr(module, "use_exact_counts", lambda _: None)
