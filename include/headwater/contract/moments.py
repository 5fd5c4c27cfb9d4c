"""Points in time as people type them."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta

from pydantic import TypeAdapter, ValidationError

from headwater.definitions.spec_model import Duration

_DURATION: TypeAdapter[timedelta] = TypeAdapter(Duration)


def moment(text: str, now: datetime | None = None) -> datetime:
    """A moment in UTC: a date or time in ISO form (UTC unless it says otherwise), or how long ago (``90 minutes``, ``7d``).

    Raises argparse.ArgumentTypeError, which argparse reports with the option's name.
    """
    try:
        parsed = datetime.fromisoformat(text.strip())
    except ValueError:
        pass
    else:
        return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    try:
        ago = _DURATION.validate_python(text.strip())
        return (now or datetime.now(UTC)) - ago
    except (ValidationError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a time (2026-01-31T08:00) nor a duration (90 minutes, 7d)"
        ) from None


def span(text: str) -> timedelta:
    """A length of time, for argparse: ``7 days``, ``30 seconds``."""
    try:
        return _DURATION.validate_python(text.strip())
    except (ValidationError, OverflowError):
        raise argparse.ArgumentTypeError(f"{text!r} is no span of time (7 days, 12 hours)") from None


def count(text: str) -> int:
    """A whole number of at least 1."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return number
