"""Lengths of time and numbers of bytes in the wording that people read, on the terminal and on the page."""

from __future__ import annotations


def age(seconds: float | None) -> str:
    """A length of time in the unit that reads best: ``42 s``, ``7 min``, ``3.5 h``, ``2.0 d``; None is empty."""
    if seconds is None:
        return ""
    for limit, divisor, unit in ((120, 1, "s"), (7200, 60, "min"), (172800, 3600, "h")):
        if seconds < limit:
            return f"{seconds / divisor:.1f} {unit}" if unit == "h" else f"{seconds / divisor:.0f} {unit}"
    return f"{seconds / 86400:.1f} d"


def size(count: float | None) -> str:
    """A number of bytes in the unit that reads best: ``512 B``, ``40 MB``, ``1.5 TB``; None is empty."""
    if count is None:
        return ""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}"
        value /= 1000
    return f"{value:,.1f} TB"
