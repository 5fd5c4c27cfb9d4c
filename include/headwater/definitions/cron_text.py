"""Times of Lakeflow as Airflow's cron text.

``EVERY n HOURS`` and Quartz's cron, which counts seconds and names Sunday 1, become the five fields of Airflow.
"""

from __future__ import annotations

import re

_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_WORDS = "|".join(
    (*_DAYS, "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
)
# Numbers, names, ranges, steps and lists of them; not Quartz's L, W and #.
_ONE = rf"(?:\*|\?|(?:\d+|{_WORDS})(?:-(?:\d+|{_WORDS}))?)(?:/\d+)?"
_PLAIN = re.compile(rf"{_ONE}(?:,{_ONE})*")
# A day of the week; what stands behind a slash is a step.
_NUMBER = re.compile(r"(?<![/\w])[1-7](?!\w)")


def is_utc(zone: str) -> bool:
    """Whether a time zone is the one in which Airflow reads a cron text."""
    return zone.upper() in ("UTC", "ETC/UTC", "GMT", "Z")


def every(count: str, unit: str) -> str | None:
    """The cron text for a number of minutes, hours, days or weeks; None where none says it without a gap."""
    if not count.isdigit() or int(count) < 1:
        return None
    number = int(count)
    if unit == "MINUTE":
        return f"*/{number} * * * *" if 60 % number == 0 and number < 60 else None
    if unit == "HOUR":
        if number == 24:
            return "0 0 * * *"
        return (f"0 */{number} * * *" if number > 1 else "0 * * * *") if 24 % number == 0 else None
    if number == 1:
        return "0 0 * * *" if unit == "DAY" else "0 0 * * 0"
    return "0 0 * * 0" if unit == "DAY" and number == 7 else None


def from_quartz(fields: list[str]) -> str | None:
    """Airflow's cron text for the fields of Quartz's; None where it has none."""
    seconds, minute, hour, day, month, weekday, *year = (field.upper() for field in fields)
    if seconds != "0" or any(one not in ("*", "?") for one in year):
        return None
    if day not in ("*", "?") and weekday not in ("*", "?"):
        return None  # Quartz wants one of the two open; cron would take either
    named = _NUMBER.sub(lambda match: _DAYS[int(match[0]) - 1], weekday)
    parts = [minute, hour, day, month, named]
    if not all(_PLAIN.fullmatch(part) for part in parts):
        return None
    return " ".join("*" if part == "?" else part for part in parts)


def from_quartz_text(text: str, zone: str) -> str | None:
    """Airflow's cron text for Quartz's in a time zone; None where it has none."""
    fields = text.split()
    return from_quartz(fields) if is_utc(zone) and len(fields) in (6, 7) else None
