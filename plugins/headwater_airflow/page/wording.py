"""Numbers and times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime


def age(seconds: float | None) -> str:
    """A length of time in its largest unit or two; a dash where it is not known."""
    if seconds is None:
        return "–"
    whole = int(seconds)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if whole >= size:
            return f"{whole // size} {unit}"
    return f"{whole} s"


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
    """Bytes in their largest unit."""
    value = float(count or 0)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
