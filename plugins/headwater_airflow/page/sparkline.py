from __future__ import annotations

from collections.abc import Sequence

WIDTH, HEIGHT = 120, 24


def points(values: Sequence[float], width: int = WIDTH, height: int = HEIGHT) -> str:
    """The points of a polyline through ``values``, oldest first, from 0 at the bottom; empty below two values."""
    if len(values) < 2:
        return ""
    top = max(values) or 1
    step = width / (len(values) - 1)
    return " ".join(
        f"{index * step:.1f},{height - 2 - (height - 4) * value / top:.1f}"
        for index, value in enumerate(values)
    )
