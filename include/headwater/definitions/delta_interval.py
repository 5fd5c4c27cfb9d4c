from __future__ import annotations

import re
from datetime import timedelta

_PART = re.compile(r"(\d+)\s*(second|minute|hour|day|week|month|year)s?", re.IGNORECASE)
_SECONDS = {
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


def duration(text: str) -> timedelta | None:
    """An interval as Delta writes it (``interval 30 days``); None where it is none."""
    parts = _PART.findall(text)
    return timedelta(seconds=sum(int(n) * _SECONDS[unit.lower()] for n, unit in parts)) if parts else None
