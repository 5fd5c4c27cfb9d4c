"""Lengths of time as people and Spark spell them: ``30 seconds``, ``5 min``, ``1 day``."""

from __future__ import annotations

import re
from datetime import timedelta

_DURATION = re.compile(
    r"\s*(\d+(?:\.\d+)?)\s*(milli|second|sec|s|minute|min|m|hour|h|day|d)[a-z]*\s*", re.IGNORECASE
)
_SECONDS = {"milli": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


def read_duration(text: str) -> timedelta | None:
    """The length of time that a text spells, None where it spells none."""
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    unit = match[2].lower()
    try:
        return timedelta(seconds=float(match[1]) * _SECONDS["milli" if unit == "milli" else unit[0]])
    except OverflowError:
        return None
