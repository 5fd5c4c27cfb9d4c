"""Lengths of time as people, Spark, Delta and cron spell them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.IGNORECASE)
# Whole words only: by its first letter a month would be a minute. A month has no length of its own, so it is none of these.
_UNITS = {
    0.001: ("ms", "msec", "msecs", "milli", "millis", "millisecond", "milliseconds"),
    1: ("s", "sec", "secs", "second", "seconds"),
    60: ("m", "min", "mins", "minute", "minutes"),
    3600: ("h", "hr", "hrs", "hour", "hours"),
    86400: ("d", "day", "days"),
    604800: ("w", "week", "weeks"),
}
_SECONDS = {unit: seconds for seconds, units in _UNITS.items() for unit in units}

_DELTA_PART = re.compile(r"(\d+)\s*(second|minute|hour|day|week|month|year)s?", re.IGNORECASE)
_DELTA_SECONDS = {
    "second": 1,
    "minute": 60,
    "hour": 3600,
    "day": 86400,
    "week": 604800,
    "month": 2592000,
    "year": 31536000,
}
LOG_RETENTION = ("delta.logRetentionDuration", "interval 30 days")
FILE_RETENTION = ("delta.deletedFileRetentionDuration", "interval 1 week")

# Enough to meet a weekend, a month's end and a year's.
_SPAN = timedelta(days=400)
_MOST = 2000


def read_duration(text: str) -> timedelta | None:
    """The length of time that a text spells (``30 seconds``, ``5 min``, ``1 day``, ``2 weeks``), None where it spells none."""
    match = _DURATION.fullmatch(text)
    unit = _SECONDS.get(match[2].lower()) if match is not None else None
    if match is None or unit is None:
        return None
    try:
        return timedelta(seconds=float(match[1]) * unit)
    except OverflowError:
        return None


def duration(text: str) -> timedelta | None:
    """An interval as Delta writes it (``interval 30 days``); None where it is none."""
    parts = _DELTA_PART.findall(text)
    return (
        timedelta(seconds=sum(int(n) * _DELTA_SECONDS[unit.lower()] for n, unit in parts)) if parts else None
    )


def longest_gap(schedule: str) -> timedelta | None:
    """The longest time between two runs of a cron text or preset; None where it is not known (``@once``)."""
    from croniter import croniter
    from croniter.croniter import CroniterError

    start = datetime(2026, 1, 1, tzinfo=UTC)
    try:
        times = croniter(schedule, start)
    except (CroniterError, ValueError, KeyError):
        return None
    longest, before = timedelta(0), None
    for _ in range(_MOST):
        now: datetime = times.get_next(datetime)
        if before is not None:
            longest = max(longest, now - before)
        if now - start > _SPAN:
            break
        before = now
    return longest or None
