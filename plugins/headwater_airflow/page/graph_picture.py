"""The graph as boxes and lines: columns by the longest way from a source, rows so that lines cross little."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headwater.definitions.source import SourceKind
from headwater.event_log.redaction import redact_text
from headwater.graph.manifest import FlowEntry, Manifest

BOX_WIDTH, BOX_HEIGHT = 224, 46
_GAP_X, _GAP_Y, _MARGIN = 60, 14, 8
_SHOWN = 24


@dataclass(frozen=True)
class Box:
    """A dataset, or a source outside (``dataset`` is None then)."""

    key: str
    label: str
    dataset: str | None
    x: int
    y: int


@dataclass(frozen=True)
class Line:
    """From one box to another; ``whole``: read as a whole, not as a stream."""

    path: str
    whole: bool


@dataclass(frozen=True)
class Picture:
    """A drawing of ``width`` by ``height`` pixels."""

    width: int
    height: int
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    box_width: int = BOX_WIDTH
    box_height: int = BOX_HEIGHT


def picture(manifest: Manifest) -> Picture:
    """Lay the graph out from left to right."""
    labels, edges = _edges(manifest)
    depth = _depths(labels, edges)
    columns: list[list[str]] = [[] for _ in range(max(depth.values(), default=0) + 1)]
    for key in labels:
        columns[depth[key]].append(key)
    place = _rows(columns, edges)
    datasets = {entry.name for entry in manifest.datasets}
    boxes = {
        key: Box(
            key,
            _short(labels[key]),
            key if key in datasets else None,
            _MARGIN + depth[key] * (BOX_WIDTH + _GAP_X),
            _MARGIN + place[key] * (BOX_HEIGHT + _GAP_Y),
        )
        for key in labels
    }
    lines = tuple(
        Line(_curve(boxes[start], boxes[end]), reads_whole) for (start, end), reads_whole in edges.items()
    )
    return Picture(
        2 * _MARGIN + len(columns) * (BOX_WIDTH + _GAP_X) - _GAP_X,
        2 * _MARGIN + max((len(column) for column in columns), default=0) * (BOX_HEIGHT + _GAP_Y) - _GAP_Y,
        tuple(boxes.values()),
        lines,
    )


def _short(label: str) -> str:
    """A label that fits a box; names that begin alike are told apart by their ends."""
    if len(label) <= _SHOWN:
        return label
    end = _SHOWN // 2 - 1
    return f"{label[: _SHOWN - 1 - end]}…{label[-end:]}"


def _edges(manifest: Manifest) -> tuple[dict[str, str], dict[tuple[str, str], bool]]:
    """Labels by key, sources first; and the lines, with whether they are read as a whole."""
    datasets = {entry.name: entry.name for entry in manifest.datasets}
    sources: dict[str, str] = {}
    edges: dict[tuple[str, str], bool] = {}
    for flow in manifest.flows:
        for source in flow.sources:
            if source.kind is not SourceKind.DATASET:
                name = (
                    source.name
                    or redact_text(source.path or "").rstrip("/").rpartition("/")[2]
                    or source.format
                )
                label = redact_text(f"{source.format or source.kind}: {name}")
                key = f"source {source.kind} {source.name} {source.path}"
                sources[key] = label
                edges[key, flow.target] = not source.streaming
        for name in flow.inputs:
            if name in datasets and name != flow.target:
                edges[name, flow.target] = not _streams(flow, name)
    return {**sources, **datasets}, {e: reads_whole for e, reads_whole in edges.items() if e[1] in datasets}


def _streams(flow: FlowEntry, name: str) -> bool:
    own = [source for source in flow.sources if source.name == name]
    return any(source.streaming for source in own) if own else flow.streaming


def _depths(labels: Mapping[str, str], edges: Mapping[tuple[str, str], bool]) -> dict[str, int]:
    depth = dict.fromkeys(labels, 0)
    # A manifest has no circles; the bound is for one that was edited by hand.
    for _ in range(len(labels)):
        moved = False
        for start, end in edges:
            if depth[end] <= depth[start] < len(labels):
                depth[end] = depth[start] + 1
                moved = True
        if not moved:
            break
    return {key: min(value, len(labels) - 1) for key, value in depth.items()}


def _rows(columns: list[list[str]], edges: Mapping[tuple[str, str], bool]) -> dict[str, int]:
    place = {key: row for column in columns for row, key in enumerate(column)}
    for column in columns:
        wish = {key: [place[start] for start, end in edges if end == key] or [place[key]] for key in column}
        column.sort(key=lambda key: (sum(wish[key]) / len(wish[key]), key))
        place.update({key: row for row, key in enumerate(column)})
    return place


def _curve(start: Box, end: Box) -> str:
    x1, y1 = start.x + BOX_WIDTH, start.y + BOX_HEIGHT // 2
    x2, y2 = end.x, end.y + BOX_HEIGHT // 2
    middle = (x1 + x2) // 2
    return f"M{x1} {y1} C{middle} {y1} {middle} {y2} {x2} {y2}"
