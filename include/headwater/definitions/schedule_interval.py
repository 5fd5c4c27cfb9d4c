from __future__ import annotations

from datetime import UTC, datetime, timedelta

# Enough to meet a weekend, a month's end and a year's.
_SPAN = timedelta(days=400)
_MOST = 2000


def longest_gap(schedule: str) -> timedelta | None:
    """The longest time between two runs of a cron text or preset; None where it can't be told (``@once``)."""
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
