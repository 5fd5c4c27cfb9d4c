"""Options of a Delta stream that open Delta would silently ignore, or refuse only when the flow starts."""

from __future__ import annotations

import re
from collections.abc import Mapping

from headwater.errors import InvalidSourceOption, UnsupportedArgument

_LIMITS = ("maxFilesPerTrigger", "maxBytesPerTrigger")
_MOST_FILES = 2**31 - 1
_NO_LIMIT = {"maxFilesPerTrigger": str(_MOST_FILES)}
_FILES = re.compile(r"\+?(?P<number>[0-9]+)")
_BYTES = re.compile(r"\s*(?P<number>[0-9]+)(b|[kmgtp]b?)?\s*", re.IGNORECASE)


def check_limits(options: Mapping[str, str]) -> None:
    """Raise InvalidSourceOption where a limit of a stream's batches (``options``: keys in lower case) is none that Delta takes."""
    for name, form, most, example in (
        ("maxFilesPerTrigger", _FILES, _MOST_FILES, '"100"'),
        ("maxBytesPerTrigger", _BYTES, 2**63 - 1, '"1g"'),
    ):
        value = options.get(name.lower())
        if value is None:
            continue
        number = form.fullmatch(value)
        if number is None or not 0 < int(number["number"]) <= most:
            raise InvalidSourceOption(
                f"{name} is {value!r}: the limit of a batch is a number above 0.",
                remedy=f"Give it one, as {example}; or leave {name} out.",
            )


def delta_overrides(options: Mapping[str, str]) -> dict[str, str]:
    """The options to set over those ``options`` (keys in lower case).

    ``withEventTimeOrder``: its purpose is that a watermark drops no row of the initial table. Open Delta does not have it.
    One batch for all existing rows has the same effect: a watermark moves only between batches.

    Raises:
        UnsupportedArgument: where a limit is given beside it, which would cut that batch.
    """
    if options.get("witheventtimeorder", "").lower() != "true":
        return {}
    limits = [name for name in _LIMITS if name.lower() in options]
    if limits:
        raise UnsupportedArgument(
            f"withEventTimeOrder and {limits[0]} exclude each other: open Delta can't sort a table's files by event time.",
            remedy=f"Leave {limits[0]} out: all that is there is then one batch, and the watermark drops none of it. Or leave "
            "withEventTimeOrder out, and give the watermark a delay that spans the first load.",
        )
    return _NO_LIMIT
