"""The part of a view that is replaced, as a condition over its columns: SQL text that holds for each key that was touched."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from headwater.delta_log.file_bounds import Sought, Value, comparable
from headwater_spark.plans.names import quoted

_PLAIN = re.compile(r"[A-Za-z0-9 _.,:+-]")
_INTEGERS = {"tinyint": "Y", "smallint": "S", "int": "", "bigint": "L"}
_DECIMAL = re.compile(r"decimal\(\d+,\d+\)")
# Types whose values are equal where their texts are.
_BY_TEXT = {"string", "date", "boolean", "timestamp_ntz"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# More columns than this narrow the part hardly further, and make the condition long.
MAX_COLUMNS = 3


@dataclass(frozen=True)
class KeyColumn:
    """A column that keys have, with its type as Spark prints it."""

    name: str
    type: str

    @property
    def collected(self) -> str:
        """SQL that gives a value as it is collected: a text, or a number where the text would depend on settings."""
        if self.type == "timestamp":
            return f"unix_micros({quoted(self.name)})"
        return f"cast({quoted(self.name)} as string)"


def usable(type_text: str) -> bool:
    """Whether values of a type can stand in such a condition: equal where Spark's comparison says so, and only there."""
    known = type_text in _BY_TEXT or type_text in _INTEGERS or type_text == "timestamp"
    return known or _DECIMAL.fullmatch(type_text) is not None


def key_condition(
    columns: Sequence[KeyColumn], keys: Sequence[Sequence[object]], max_keys: int
) -> tuple[str, tuple[str, ...]] | None:
    """The condition for the touched keys, and the columns that it names.

    Each column is narrowed to its own values, so that more than the keys meet it: never less.

    Args:
        keys: the touched keys as they were collected, None for NULL.
        max_keys: a column with more values is left out, or narrowed to a range if it is the only one.

    Returns:
        None where no column can narrow the part.
    """
    values = {column: list(dict.fromkeys(key[place] for key in keys)) for place, column in enumerate(columns)}
    listed = sorted((c for c in columns if len(values[c]) <= max_keys), key=lambda c: len(values[c]))
    texts = {column: _listed(column, values[column]) for column in listed}
    chosen = [column for column in listed if texts[column] is not None][:MAX_COLUMNS]
    if chosen:
        return " AND ".join(f"({texts[c]})" for c in chosen), tuple(c.name for c in chosen)
    for column in columns:
        text = _range(column, values[column])
        if text is not None:
            return text, (column.name,)
    return None


def sought_values(
    columns: Sequence[KeyColumn], keys: Sequence[Sequence[object]], named: Collection[str], max_keys: int
) -> list[Sought]:
    """The values that rows which meet ``key_condition`` have, of the columns that it names; as it has them, listed or as a range."""
    sought = []
    for place, column in enumerate(columns):
        values = list(dict.fromkeys(key[place] for key in keys))
        there = [value for value in values if value is not None]
        known = [bound for value in there if (bound := _bound(column.type, value)) is not None]
        if column.name in named and len(known) == len(there):
            ascending = tuple(sorted(known))
            sought.append(Sought(column.name, ascending, None in values, len(values) > max_keys))
    return sought


def _bound(type_text: str, value: object) -> Value | None:
    text = str(value)
    if type_text in _INTEGERS or type_text == "timestamp":
        return int(text)
    if type_text == "date":
        try:
            return comparable(date.fromisoformat(text))
        except ValueError:
            return None
    return text if type_text == "string" else None


def _listed(column: KeyColumn, values: Sequence[object]) -> str | None:
    literals = [_literal(column.type, value) for value in values if value is not None]
    known = [literal for literal in literals if literal is not None]
    if len(known) < len(literals):
        return None
    name = quoted(column.name)
    parts = [f"{name} IN ({', '.join(known)})"] if known else []
    if None in values:
        parts.append(f"{name} IS NULL")
    return " OR ".join(parts)


def _range(column: KeyColumn, values: Sequence[object]) -> str | None:
    if column.type not in _INTEGERS and column.type != "timestamp":
        return None
    numbers = [int(str(value)) for value in values if value is not None]
    low, high = (_literal(column.type, number) for number in (min(numbers), max(numbers)))
    name = quoted(column.name)
    if low is None or high is None:
        return None
    text = f"({name} >= {low} AND {name} <= {high})"
    return f"{text} OR {name} IS NULL" if None in values else text


def _literal(type_text: str, value: object) -> str | None:  # noqa: PLR0911 - one return a type
    text = str(value)
    if type_text in _INTEGERS:
        return f"{text}{_INTEGERS[type_text]}"
    if type_text == "boolean":
        return text
    if type_text == "date":
        return f"DATE'{text}'"
    if type_text == "timestamp_ntz":
        return f"TIMESTAMP_NTZ'{text}'"
    if type_text == "timestamp":
        try:
            moment = _EPOCH + timedelta(microseconds=int(text))
        except OverflowError:
            return None
        return f"TIMESTAMP'{moment:%Y-%m-%d %H:%M:%S.%f}+00:00'" if moment.year > 999 else None
    if type_text == "string":
        return "'" + "".join(map(_escaped, text)) + "'"
    return f"{text}BD"


def _escaped(character: str) -> str:
    """A character of a SQL text that no parser, and no filling in of variables, takes for anything else."""
    if _PLAIN.fullmatch(character):
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
