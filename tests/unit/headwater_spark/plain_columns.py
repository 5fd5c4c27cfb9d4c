"""Spark's columns over plain rows, as far as decisions about rows need them: no JVM, no optimiser. See ``plain_rows``.

This module stands in the place of ``pyspark.sql.functions``. NULL is None, with SQL's three-valued logic; a struct is a dict, and
NULL is below all values inside of one. The text of a rule (``expr``) is the name of a column that says what the rule gives.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql.types import DataType

Row = dict[str, Any]


class Raised(Exception):
    """What ``raise_error`` throws; the text as Spark's."""


class _Nothing:
    def __repr__(self) -> str:
        return "no branch"


_NO_BRANCH = _Nothing()


@dataclass(frozen=True, eq=False)
class Column:  # noqa: PLW1641 - no Column of Spark's has a hash to count on either
    """``of``: the value for a row of a frame; ``over_all``: for all rows (an aggregate).

    ``within``: the value at a place among the rows of a window, in their order. ``by_peers``: rows that are equal
    in that order have one place, the first. ``fields``: of a struct; ``explodes``: each of the values makes a row.
    """

    of: Callable[[Row], Any]
    name: str = ""
    over_all: Callable[[Sequence[Row]], Any] | None = None
    within: Callable[[Sequence[Row], int], Any] | None = None
    by_peers: bool = False
    fields: tuple[str, ...] = ()
    explodes: bool = False

    def alias(self, name: str) -> Column:
        return replace(self, name=name)

    def cast(self, kind: DataType | str) -> Column:
        """Values are as they are, but for the truth that is added up."""
        return Column(lambda row: _null(v := self.of(row), True, lambda: int(v))) if kind == "int" else self

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
        return _binary(self, other, lambda one, two: order_of(one) > order_of(two))

    def __lt__(self, other: object) -> Column:
        return _binary(self, other, lambda one, two: order_of(one) < order_of(two))

    def __le__(self, other: object) -> Column:
        return _binary(self, other, lambda one, two: order_of(one) <= order_of(two))

    def __ge__(self, other: object) -> Column:
        return _binary(self, other, lambda one, two: order_of(one) >= order_of(two))

    def __add__(self, other: object) -> Column:
        return _binary(self, other, lambda one, two: one + two)

    def __sub__(self, other: object) -> Column:
        return _binary(self, other, lambda one, two: one - two)

    def __mul__(self, other: object) -> Column:
        return _binary(self, other, lambda one, two: one * two)

    def __getitem__(self, part: int | str) -> Column:
        """An element of an array, or a field of a struct."""
        return Column(lambda row: _null(value := self.of(row), True, lambda: value[part]), str(part))

    getField = __getitem__  # noqa: N815 - Spark's name

    def between(self, low: Column, high: Column) -> Column:
        return (self >= low) & (self <= high)

    def bitwiseAND(self, other: Column) -> Column:  # noqa: N802 - Spark's name
        return _binary(self, other, lambda one, two: one & two)

    def bitwiseOR(self, other: Column) -> Column:  # noqa: N802
        return _binary(self, other, lambda one, two: one | two)

    def isNull(self) -> Column:  # noqa: N802
        return Column(lambda row: or_null(self.of(row)) is None)

    def isNotNull(self) -> Column:  # noqa: N802
        return Column(lambda row: or_null(self.of(row)) is not None)

    def eqNullSafe(self, other: Column) -> Column:  # noqa: N802
        return Column(lambda row: or_null(self.of(row)) == or_null(other.of(row)))

    def desc_nulls_last(self) -> Column:
        return Column(lambda row: _Descending(order_of(self.of(row))))

    def isin(self, *values: Any) -> Column:
        listed = values[0] if len(values) == 1 and isinstance(values[0], list) else values
        return Column(lambda row: _null(value := self.of(row), True, lambda: value in listed))

    def when(self, condition: Column, value: Any) -> Column:
        """A further branch."""
        return self.otherwise(when(condition, value))

    def otherwise(self, other: Column | Any) -> Column:
        rest = other if isinstance(other, Column) else lit(other)
        return Column(lambda row: self.of(row) if self.of(row) is not _NO_BRANCH else rest.of(row))

    def over(self, window: Any) -> Column:
        """The value among the rows of a window: up to the row, where it has an order."""
        within, total = self.within, self.over_all
        if within is None:
            assert total is not None
            all_of = total
            within = lambda rows, place: all_of(rows[: place + 1])  # noqa: E731
        return Column(lambda row: within(*window.around(row, by_peers=self.by_peers)))


@functools.total_ordering
@dataclass(frozen=True)
class _Descending:
    value: Any

    def __lt__(self, other: _Descending) -> bool:
        return bool(other.value < self.value)


def order_of(value: Any) -> Any:
    """By what values are ordered."""
    if isinstance(value, dict | list):
        return (1, [order_of(part) for part in (value.values() if isinstance(value, dict) else value)])
    return (0,) if value is None else (1, value)


def or_null(value: Any) -> Any:
    """A value; NULL of a ``when`` without a branch that is met."""
    return None if value is _NO_BRANCH else value


def _null(left: Any, right: Any, value: Callable[[], Any]) -> Any:
    return None if or_null(left) is None or or_null(right) is None else value()


def _binary(left: Column, right: object, how: Callable[[Any, Any], Any]) -> Column:
    other = right if isinstance(right, Column) else lit(right)

    def value(row: Row) -> Any:
        one, two = left.of(row), other.of(row)
        return _null(one, two, lambda: how(one, two))

    aggregates = left.over_all is not None or other.over_all is not None
    return Column(
        value, over_all=(lambda rows: how(_total(left, rows), _total(other, rows))) if aggregates else None
    )


def _total(column: Column, rows: Sequence[Row]) -> Any:
    return column.of({}) if column.over_all is None else column.over_all(rows)


def lit(value: Any) -> Column:
    return Column(lambda _: value, str(value))


def col(name: str) -> Column:
    """A column by its name, in backticks or not; ``a.b``: a field of a struct, or a column of a frame with an alias."""
    matches = re.findall(r"`((?:[^`]|``)+)`|([^.`]+)", name)
    parts = [quoted.replace("``", "`") or plain for quoted, plain in matches]

    def within(value: Any, part: str) -> Any:
        return None if value is None else value[part]  # a field of NULL is NULL

    return Column(lambda row: functools.reduce(within, parts, row), parts[-1])


def as_column(column: Column | str) -> Column:
    """A column that may be given by its name."""
    return col(column) if isinstance(column, str) else column


def expr(text: str) -> Column:
    """What a SQL text gives is in the row's column of that name."""
    return Column(lambda row: row[text], text)


def when(condition: Column | str, value: Any) -> Column:
    chosen, met = value if isinstance(value, Column) else lit(value), as_column(condition)
    return Column(lambda row: chosen.of(row) if met.of(row) is True else _NO_BRANCH, fields=chosen.fields)


def coalesce(*columns: Column) -> Column:
    return Column(lambda row: next((v for c in columns if (v := or_null(c.of(row))) is not None), None))


def _extreme(pick: Callable[[Any], Any], columns: Iterable[Column | str]) -> Column:
    given = [as_column(column) for column in columns]

    def value(row: Row) -> Any:
        known = [v for column in given if (v := or_null(column.of(row))) is not None]
        return pick(known) if known else None

    return Column(value)


def greatest(*columns: Column | str) -> Column:
    return _extreme(lambda known: max(known, key=order_of), columns)


def least(*columns: Column | str) -> Column:
    return _extreme(lambda known: min(known, key=order_of), columns)


def array(*columns: Column) -> Column:
    fields = next((column.fields for column in columns if column.fields), ())
    return Column(lambda row: [or_null(column.of(row)) for column in columns], fields=fields)


def array_compact(column: Column) -> Column:
    return replace(column, of=lambda row: [value for value in column.of(row) if value is not None])


def array_contains(column: Column, value: Any) -> Column:
    return Column(lambda row: _null(values := column.of(row), True, lambda: value in values))


def array_intersect(one: Column, other: Column) -> Column:
    return _binary(one, other, lambda left, right: [value for value in left if value in right])


def explode(column: Column | str) -> Column:
    return replace(as_column(column), explodes=True)


def size(column: Column | str) -> Column:
    given = as_column(column)
    total = given.over_all
    counted = None if total is None else (lambda rows: len(total(rows)))
    return Column(lambda row: len(given.of(row)), over_all=counted)


def filter(column: Column, keep: Callable[..., Column]) -> Column:  # noqa: A001 - Spark's name
    """``keep``: of an element, or of it and its place."""

    def kept(row: Row) -> Any:
        values = column.of(row)
        given = keep.__code__.co_argcount
        places = enumerate(values or ())
        chosen = [value for place, value in places if keep(*(lit(value), lit(place))[:given]).of(row)]
        return None if values is None else chosen

    return Column(kept)


def transform(column: Column, change: Callable[[Column], Column]) -> Column:
    return Column(
        lambda row: _null(
            values := column.of(row), True, lambda: [or_null(change(lit(v)).of(row)) for v in values]
        )
    )


def transform_values(column: Column, change: Callable[[Column, Column], Column]) -> Column:
    def changed(row: Row) -> Any:
        values = column.of(row)
        return _null(
            values, True, lambda: {k: or_null(change(lit(k), lit(v)).of(row)) for k, v in values.items()}
        )

    return Column(changed)


def lower(column: Column) -> Column:
    return Column(lambda row: _null(text := column.of(row), True, lambda: text.lower()))


def bit_get(column: Column, place: Column) -> Column:
    return _binary(column, place, lambda bits, number: bits >> number & 1)


def shiftright(column: Column, bits: int) -> Column:
    return _binary(column, bits, lambda number, places: number >> places)


def xxhash64(*columns: Column) -> Column:
    """Another number of 64 bits than Spark's; it passes over NULLs as Spark's does."""

    def value(row: Row) -> int:
        known = [value for column in columns if (value := or_null(column.of(row))) is not None]
        digest = hashlib.blake2b(repr(known).encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big", signed=True)

    return Column(value)


def concat(*columns: Column) -> Column:
    def value(row: Row) -> Any:
        parts = [column.of(row) for column in columns]
        return functools.reduce(lambda one, two: one + two, parts)

    return Column(value)


def struct(*columns: Column | str) -> Column:
    parts = [as_column(column) for column in columns]
    names = tuple(part.name for part in parts)
    return Column(lambda row: {part.name: or_null(part.of(row)) for part in parts}, fields=names)


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


def broadcast(frame: Any) -> Any:
    return frame
