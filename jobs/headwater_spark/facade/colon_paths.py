"""``details:flow_progress.metrics``: a path into JSON text, as in the closed platform's SQL.

Open Spark parses the colon, but resolves it only for VARIANT. The event log's ``details`` is text, so each path becomes
``get_json_object``, which means the same. Spark's own parser says where the paths are.

Decision 0082.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from headwater_spark.plans.plan_walk import class_name, expression_nodes, items, plan_nodes, simple_name

# What the parser treats as a separate step after the path: `details:a[*].name`.
_REST = re.compile(r"\[\s*(?:\*|\d+)\s*\](?:\s*\.\s*\w+|\s*\[\s*(?:\*|\d+)\s*\])*")


@dataclass(frozen=True)
class Replacement:
    """A piece of a SQL text, from its first character to its last, and the text that replaces it."""

    start: int
    stop: int
    text: str


def colon_paths(plan: Any, text: str) -> Iterator[Replacement]:
    """Replacements for the colon paths of a parsed query."""
    named = {_span(item) for node in plan_nodes(plan) for item in _unnamed_paths(node)}
    seen: set[tuple[int, int]] = set()
    for node in plan_nodes(plan):
        for expression in items(node.expressions().toSeq()):
            for part in expression_nodes(expression):
                if _is_path(part) and _span(part) not in seen:
                    seen.add(_span(part))
                    yield _replacement(part, text, named=_span(part) in named)


def replaced(text: str, replacements: list[Replacement]) -> str:
    """The text with its replacements; of two that overlap, the longer one is applied."""
    end = len(text)
    for item in sorted(replacements, key=lambda item: (-item.stop, item.start)):
        if item.stop < end:
            text = text[: item.start] + item.text + text[item.stop + 1 :]
            end = item.start
    return text


def _replacement(path: Any, text: str, *, named: bool) -> Replacement:
    start, stop = _span(path)
    steps: list[str] = []
    base = path
    while _is_path(base):
        steps.insert(0, str(base.field()).removeprefix("$"))
        base = base.child()
        # The parser names each step of a path; in the end only the whole path has a name.
        while class_name(base).endswith(".Alias") and _is_path(base.child()):
            base = base.child()
    begin, end = _span(base)
    suffix = _REST.match(text, stop + 1)
    if suffix is not None:
        steps.append(re.sub(r"\s", "", suffix[0]))
        stop = suffix.end() - 1
    json_path = "$" + "".join(steps).replace("\\", "\\\\").replace("'", "\\'")
    call = f"get_json_object(CAST({text[begin : end + 1]} AS STRING), '{json_path}')"
    last = re.search(r"(\w+)(?:\[\d+\])*$", "".join(steps))
    return Replacement(start, stop, f"{call} AS `{last[1]}`" if named and last else call)


def _unnamed_paths(node: Any) -> Iterator[Any]:
    """The columns of a SELECT that are just a path: they are named after its last step."""
    kind = simple_name(node)
    columns = (
        node.projectList()
        if kind == "Project"
        else node.aggregateExpressions()
        if kind == "Aggregate"
        else None
    )
    for column in items(columns) if columns is not None else ():
        if class_name(column).endswith(".Alias") and _is_path(column.child()):
            yield column.child()


def _is_path(part: Any) -> bool:
    return class_name(part).endswith(".SemiStructuredExtract")


def _span(part: Any) -> tuple[int, int]:
    origin = part.origin()
    return int(origin.startIndex().get()), int(origin.stopIndex().get())
