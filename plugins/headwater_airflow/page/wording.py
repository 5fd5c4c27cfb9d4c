"""Numbers and times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

from headwater.contract import quantities


def age(seconds: float | None) -> str:
    """A length of time in words; a dash where it is not known."""
    return quantities.age(seconds) or "–"


def rows(count: int | None) -> str:
    """A number of rows; a dash where it is not known."""
    return "–" if count is None else f"{count:,}".replace(",", "\u202f")


def ago(moment: datetime | None) -> str:
    """How long ago something was."""
    if moment is None:
        return "–"
    return f"{age(max(0.0, (datetime.now(UTC) - _aware(moment)).total_seconds()))} ago"


def clock(moment: datetime | None) -> str:
    """Date and time in UTC."""
    return "–" if moment is None else _aware(moment).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def percent(share: float | None) -> str:
    """A share in percent; never 100 where something failed."""
    if share is None:
        return "–"
    return "100 %" if share >= 1 else f"{min(99.9, share * 100):.1f} %"


def size(count: float | None) -> str:
    """A number of bytes in words; none is 0."""
    return quantities.size(count or 0)


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
