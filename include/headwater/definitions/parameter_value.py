"""Values of parameters: what a text or a JSON value means as a type, and the one way in which each value is written.

Decision 0160.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from enum import StrEnum

# What a parameter of a type holds in Python; a timestamp has a time zone.
Value = str | int | float | bool | date | datetime

LONGEST_VALUE = 10_000  # characters
_UNUSABLE = re.compile("[\x00\ud800-\udfff]")
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:.,]{2,20}(?:Z|[+-][0-9:]{2,6})?)?")
# Beyond this a float has no fraction and is written with its exponent.
_WHOLE = 10**15


class ParameterType(StrEnum):
    """What a parameter's values are."""

    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"


def read_value(kind: ParameterType, given: object) -> Value:
    """What ``given`` (a text, or a value of JSON or YAML) is as this type.

    Raises:
        ValueError: it is none; the message says what is expected, without the value.
    """
    if isinstance(given, str) and (len(given) > LONGEST_VALUE or _UNUSABLE.search(given)):
        raise ValueError(f"must be text of at most {LONGEST_VALUE} characters, without NUL and surrogates")
    return _READERS[kind](given)


def value_text(value: Value) -> str:
    """A value as sources see it in the configuration, and as it stands in the event log; ``read_value`` gives it back."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, date):  # a datetime, too
        return value.isoformat()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < _WHOLE else repr(value)
    return str(value)


def kind_of(value: object) -> ParameterType:
    """The type that a value of YAML has by itself; a text is a string, whatever is in it."""
    if isinstance(value, bool):
        return ParameterType.BOOLEAN
    if isinstance(value, datetime):
        return ParameterType.TIMESTAMP
    types = ((int, ParameterType.INTEGER), (float, ParameterType.NUMBER), (date, ParameterType.DATE))
    return next((kind for known, kind in types if isinstance(value, known)), ParameterType.STRING)


def _string(given: object) -> str:
    if isinstance(given, str):
        return given
    raise ValueError("must be text (a number, a date or a truth value goes in quotes)")


def _integer(given: object) -> int:
    if isinstance(given, str) and _INTEGER.fullmatch(given):
        given = int(given)
    if isinstance(given, int) and not isinstance(given, bool) and -(2**63) <= given < 2**63:
        return given
    raise ValueError("must be a whole number of at most 64 bits")


def _number(given: object) -> float:
    if isinstance(given, str) and _NUMBER.fullmatch(given):
        given = float(given)
    if isinstance(given, int | float) and not isinstance(given, bool):
        try:
            if math.isfinite(number := float(given)):
                return number
        except OverflowError:
            pass
    raise ValueError("must be a finite number")


def _boolean(given: object) -> bool:
    if isinstance(given, bool):
        return given
    if isinstance(given, str) and given.lower() in ("true", "false"):
        return given.lower() == "true"
    raise ValueError("must be true or false")


def _date(given: object) -> date:
    try:
        if isinstance(given, str) and _DATE.fullmatch(given):
            return date.fromisoformat(given)
    except ValueError:
        pass
    if isinstance(given, date) and not isinstance(given, datetime):
        return given
    raise ValueError("must be a date: 2026-01-31")


def _timestamp(given: object) -> datetime:
    try:
        if isinstance(given, str) and _TIMESTAMP.fullmatch(given):
            given = datetime.fromisoformat(given)
        if isinstance(given, date) and not isinstance(given, datetime):
            given = datetime.combine(given, time())
        if isinstance(given, datetime):
            return given.astimezone(UTC) if given.tzinfo else given.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        pass
    raise ValueError("must be a time: 2026-01-31T08:00, of UTC unless it says otherwise")


_READERS: dict[ParameterType, Callable[[object], Value]] = {
    ParameterType.STRING: _string,
    ParameterType.INTEGER: _integer,
    ParameterType.NUMBER: _number,
    ParameterType.BOOLEAN: _boolean,
    ParameterType.DATE: _date,
    ParameterType.TIMESTAMP: _timestamp,
}
