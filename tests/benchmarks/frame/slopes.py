"""The slope of a figure over a size or over time."""

from __future__ import annotations

from collections.abc import Sequence


def slope(positions: Sequence[float], values: Sequence[float]) -> float:
    """Of the line through the points, by least squares; 0 where all stand at one position."""
    middle, mean = sum(positions) / len(positions), sum(values) / len(values)
    squares = sum((x - middle) ** 2 for x in positions) or 1.0
    return sum((x - middle) * (y - mean) for x, y in zip(positions, values, strict=True)) / squares
