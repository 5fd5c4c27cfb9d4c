"""Comparing rows as tests do: in any order, each as often as it is there, columns by name."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

_SHOWN = 10


def assert_same_rows(
    actual: Iterable[Mapping[str, Any]],
    expected: Iterable[Mapping[str, Any]],
    *,
    ignore: Collection[str] = (),
    names: tuple[str, str] = ("result", "expectation"),
) -> None:
    """Raise AssertionError, with the rows that differ, unless both have the same rows, equally often.

    A column that a row leaves out is NULL. Numbers are equal as Python has it (1 == 1.0 == Decimal("1.00")), floats to
    twelve digits; a time without a zone is in UTC.

    Args:
        ignore: columns that are not compared.
        names: the names of the two in the message.

    """
    ones = [_without(row, ignore) for row in actual]
    others = [_without(row, ignore) for row in expected]
    surplus, missing = difference(ones, others), difference(others, ones)
    if not surplus and not missing:
        return
    lines = [f"The rows differ: the {names[0]} has {len(ones)}, the {names[1]} {len(others)}."]
    for label, rows in ((f"only in the {names[0]}", surplus), (f"only in the {names[1]}", missing)):
        lines += [f"  {label}: {_text(row)}" for row in rows[:_SHOWN]]
        if len(rows) > _SHOWN:
            lines.append(f"  {label}: {len(rows) - _SHOWN} more")
    raise AssertionError("\n".join(lines))


def difference(
    rows: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The rows that ``others`` does not have, or does not have as often."""
    left = Counter(map(_key, others))
    missing = []
    for row in rows:
        key = _key(row)
        if left[key] > 0:
            left[key] -= 1
        else:
            missing.append(dict(row))
    return missing


def _without(row: Mapping[str, Any], ignore: Collection[str]) -> dict[str, Any]:
    hidden = {name.lower() for name in ignore}
    return {name: value for name, value in row.items() if name.lower() not in hidden}


def _key(row: Mapping[str, Any]) -> str:
    values = {name.lower(): value for name, value in row.items() if value is not None}
    return json.dumps(_canonical(values), sort_keys=True, default=str)


def _canonical(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _canonical(item) for name, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float | Decimal):
        # Tagged, so that 1 is not "1".
        return {"number": f"{value:.12g}" if isinstance(value, float) else _plain_number(Decimal(value))}
    if isinstance(value, datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return aware.astimezone(UTC).isoformat()
    return value if value is None or isinstance(value, str) else str(value)


def _plain_number(value: Decimal) -> str:
    text = f"{value:f}" if value.is_finite() else str(value)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _text(row: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{name}: {value!r}" for name, value in row.items()) + "}"
