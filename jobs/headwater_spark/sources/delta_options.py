"""Options of a Delta stream that open Delta would silently ignore."""

from __future__ import annotations

from collections.abc import Mapping

from headwater.errors import UnsupportedArgument

_LIMITS = ("maxFilesPerTrigger", "maxBytesPerTrigger")
_NO_LIMIT = {"maxFilesPerTrigger": str(2**31 - 1)}


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
