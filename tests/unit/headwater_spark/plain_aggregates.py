"""Spark's aggregates and window functions over plain rows, by Spark's names (``AGGREGATES``); see ``plain_columns``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tests.unit.headwater_spark.plain_columns import Column, Row, as_column, or_null, order_of


def _known(column: Column, rows: Sequence[Row]) -> list[Any]:
    return [value for row in rows if (value := or_null(column.of(row))) is not None]


def _aggregate(total: Callable[[list[Any]], Any]) -> Callable[[Column | str], Column]:
    """An aggregate of the values of a column that are not NULL."""

    def made(column: Column | str) -> Column:
        given = as_column(column)
        return Column(lambda _: None, over_all=lambda rows: total(_known(given, rows)), fields=given.fields)

    return made


def _without_repeats(values: list[Any]) -> list[Any]:
    return [value for place, value in enumerate(values) if value not in values[:place]]


def _by(pick: Callable[[list[tuple[Any, Any]]], tuple[Any, Any]]) -> Callable[..., Column]:
    """The value of a column in the row with the least or the greatest of another; rows where that is NULL do not count."""

    def made(column: Column | str, by: Column | str) -> Column:
        given, order = as_column(column), as_column(by)

        def over_all(rows: Sequence[Row]) -> Any:
            pairs = [(or_null(given.of(row)), or_null(order.of(row))) for row in rows]
            known = [pair for pair in pairs if pair[1] is not None]
            return pick(known)[0] if known else None

        return Column(lambda _: None, over_all=over_all, fields=given.fields)

    return made


def first(column: Column | str) -> Column:
    """The value in the first row, NULL too."""
    given = as_column(column)
    return Column(
        lambda _: None,
        over_all=lambda rows: or_null(given.of(rows[0])) if rows else None,
        fields=given.fields,
    )


def last(column: Column | str, *, ignorenulls: bool = False) -> Column:
    """The value in the last row."""
    given = as_column(column)

    def over_all(rows: Sequence[Row]) -> Any:
        values = _known(given, rows) if ignorenulls else [or_null(given.of(row)) for row in rows]
        return values[-1] if values else None

    return Column(lambda _: None, over_all=over_all, fields=given.fields)


def _beside(steps: int) -> Callable[[Column | str], Column]:
    """The value so many rows further on in a window, NULL where there is none."""

    def made(column: Column | str) -> Column:
        given = as_column(column)

        def within(rows: Sequence[Row], place: int) -> Any:
            there = place + steps
            return or_null(given.of(rows[there])) if 0 <= there < len(rows) else None

        return Column(lambda _: None, within=within, fields=given.fields)

    return made


def row_number() -> Column:
    """The number of a row in a window, from 1."""
    return Column(lambda _: None, within=lambda _, place: place + 1)


AGGREGATES: dict[str, Callable[..., Column]] = {
    "count": _aggregate(len),
    "count_if": _aggregate(lambda known: sum(value is True for value in known)),
    "sum": _aggregate(lambda known: sum(known) if known else None),
    "max": _aggregate(lambda known: max(known, key=order_of) if known else None),
    "min": _aggregate(lambda known: min(known, key=order_of) if known else None),
    "max_by": _by(lambda pairs: max(pairs, key=lambda pair: order_of(pair[1]))),
    "min_by": _by(lambda pairs: min(pairs, key=lambda pair: order_of(pair[1]))),
    "collect_list": _aggregate(list),
    "collect_set": _aggregate(_without_repeats),
    "first": first,
    "last": last,
    "lag": _beside(-1),
    "lead": _beside(1),
    "row_number": row_number,
    "rank": lambda: replace(row_number(), by_peers=True),
}
