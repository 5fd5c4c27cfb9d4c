"""Plots as SVG, drawn without a library: each run a dot, each median a line; and bars of parts of a time."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from html import escape

_WIDTH, _LEFT, _ROW = 720, 250, 20
_COLOURS = ("#1f6feb", "#8b949e", "#bf8700", "#1a7f37", "#a40e26", "#6639ba", "#0a7ea4")
_TEXT = 'font-family="sans-serif" font-size="12" fill="#57606a"'


def dots(parts: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    """Wall seconds of each run, by part and contender, on a logarithmic scale that all share."""
    every = [value for runs in parts.values() for values in runs.values() for value in values]
    low, high = math.log10(max(min(every), 1e-4)) - 0.05, math.log10(max(every)) + 0.05
    scale = (_WIDTH - _LEFT - 20) / max(high - low, 0.1)
    lines, top = [], 10

    def x(value: float) -> float:
        return round(_LEFT + (math.log10(max(value, 1e-4)) - low) * scale, 1)

    for part, contenders in parts.items():
        lines.append(f'<text x="4" y="{top + 14}" {_TEXT} font-weight="bold">{escape(part)}</text>')
        top += _ROW
        for index, (name, values) in enumerate(contenders.items()):
            colour, y = _COLOURS[index % len(_COLOURS)], top + 10
            lines.append(
                f'<text x="{_LEFT - 10}" y="{y + 4}" text-anchor="end" {_TEXT}>{escape(name)}</text>'
            )
            lines.append(
                f'<line x1="{_LEFT}" y1="{y}" x2="{_WIDTH - 20}" y2="{y}" stroke="#d0d7de" stroke-width="0.5"/>'
            )
            lines += [
                f'<circle cx="{x(value)}" cy="{y}" r="3.5" fill="{colour}" fill-opacity="0.55"/>'
                for value in values
            ]
            middle = x(statistics.median(values))
            lines.append(
                f'<line x1="{middle}" y1="{y - 7}" x2="{middle}" y2="{y + 7}" stroke="{colour}" stroke-width="2"/>'
            )
            top += _ROW
    lines += [
        f'<text x="{x(tick)}" y="{top + 16}" text-anchor="middle" {_TEXT}>{tick:g}</text>'
        for tick in _ticks(low, high)
    ]
    lines.append(f'<text x="4" y="{top + 16}" {_TEXT}>wall seconds, logarithmic; line: median</text>')
    return _picture(lines, top + 28)  # fmt: skip


def bars(totals: Mapping[str, Mapping[str, float]]) -> str:
    """Seconds as stacked bars, one for each entry, with the parts named below."""
    longest = max(sum(parts.values()) for parts in totals.values())
    scale = (_WIDTH - _LEFT - 60) / longest
    names = list(dict.fromkeys(name for parts in totals.values() for name in parts))
    lines, top = [], 10
    for label, parts in totals.items():
        lines.append(
            f'<text x="{_LEFT - 10}" y="{top + 16}" text-anchor="end" {_TEXT}>{escape(label)}</text>'
        )
        left = float(_LEFT)
        for name, seconds in parts.items():
            colour = _COLOURS[names.index(name) % len(_COLOURS)]
            lines.append(
                f'<rect x="{left:.1f}" y="{top}" width="{seconds * scale:.1f}" height="22" fill="{colour}"><title>{escape(name)}</title></rect>'
            )
            left += seconds * scale
        lines.append(f'<text x="{left + 6:.1f}" y="{top + 16}" {_TEXT}>{sum(parts.values()):.1f} s</text>')
        top += 32
    for name in names:
        lines.append(
            f'<rect x="{_LEFT}" y="{top}" width="12" height="12" fill="{_COLOURS[names.index(name) % len(_COLOURS)]}"/>'
        )
        lines.append(f'<text x="{_LEFT + 18}" y="{top + 11}" {_TEXT}>{escape(name)}</text>')
        top += 18
    return _picture(lines, top + 6)  # fmt: skip


def _ticks(low: float, high: float) -> list[float]:
    steps = [factor * 10.0**power for power in range(-4, 4) for factor in (1, 2, 5)]
    found = [tick for tick in steps if low <= math.log10(tick) <= high]
    return found if len(found) < 10 else [tick for tick in found if f"{tick:e}".startswith("1")]


def _picture(lines: Sequence[str], height: int) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}">'
    ground = f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>'
    return "\n".join([head, ground, *lines, "</svg>"]) + "\n"
