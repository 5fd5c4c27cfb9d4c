"""Points in time as Spark reads them in options: a date, perhaps a time, perhaps a zone."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, available_timezones

_TEXT = re.compile(
    r"(?P<year>\d{4})(?:-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2})"
    r"(?:[T ](?:(?P<hour>\d{1,2})(?::(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.(?P<part>\d{0,9}))?)?)?"
    r"\s*(?P<zone>[A-Za-z+-].*)?)?)?)?)?"
)
_OFFSET = re.compile(
    r"(?:UTC|GMT|UT)?(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>\d{2})(?::(?P<seconds>\d{2}))?)?"
)


def instant_of(text: str, time_zone: str) -> datetime | None:
    """The moment that a text names, in UTC; None where Spark would not take it for one.

    Args:
        text: as ``2026-01-31``, ``2026-01-31 08:00:00.5``, ``2026-01-31T08:00:00Z``, ``2026-01-31 08:00:00 UTC+1`` or
            ``... Europe/Berlin``.
        time_zone: of a text that names none.
    """
    match = _TEXT.fullmatch(text.strip())
    if match is None:
        return None
    parts = {name: int(match[name] or 0) for name in ("hour", "minute", "second")}
    # Spark keeps six digits.
    micros = int((match["part"] or "")[:6].ljust(6, "0"))
    zone = _zone(match["zone"] or time_zone)
    if zone is None:
        return None
    try:
        moment = datetime(
            int(match["year"]),
            int(match["month"] or 1),
            int(match["day"] or 1),
            microsecond=micros,
            tzinfo=zone,
            **parts,
        )
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def clock_at(moment: datetime, time_zone: str) -> datetime | None:
    """What clocks of a zone show at a moment, with their offset; None for a zone that nobody knows."""
    zone = _zone(time_zone)
    return None if zone is None else moment.astimezone(zone)


def _zone(name: str) -> tzinfo | None:
    name = name.strip()
    if name.upper() in ("Z", "UTC", "GMT", "UT"):
        return UTC
    offset = _OFFSET.fullmatch(name)
    if offset is None:
        return ZoneInfo(name) if name in available_timezones() else None
    length = timedelta(
        hours=int(offset["hours"]), minutes=int(offset["minutes"] or 0), seconds=int(offset["seconds"] or 0)
    )
    # Spark's zones are at most that far from UTC.
    if length > timedelta(hours=18):
        return None
    return timezone(-length if offset["sign"] == "-" else length)
