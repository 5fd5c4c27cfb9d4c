"""``_metadata`` of files that SQL text reads through a function: a hidden column, which the view over the rows has to carry openly.

A star over such a view would bring it along, where a star over the files does not: it is taken out of those stars.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from headwater_spark.facade.colon_paths import Replacement
from headwater_spark.facade.sql_sources import SourceCall, source_calls
from headwater_spark.plans.plan_walk import class_name, expression_nodes, items, plan_nodes

METADATA = "_metadata"
_NAMED = re.compile(rf"(?<![\w`.]){METADATA}\b|\.\s*{METADATA}\b", re.IGNORECASE)
# Where a query's own rows begin: what is below them has no hidden column any more.
_BLOCKS = {
    "Project",
    "Aggregate",
    "Union",
    "Intersect",
    "Except",
    "UnresolvedWith",
    "UnresolvedRelation",
    "Distinct",
}


def names_metadata(text: str) -> bool:
    """Whether a SQL text may name the hidden column."""
    return _NAMED.search(text) is not None


def with_metadata(frame: DataFrame) -> DataFrame:
    """The rows with their hidden column among the others; unchanged where they have none."""
    if METADATA in frame.columns:
        return frame
    try:
        return frame.select("*", METADATA)
    except PySparkException:
        return frame


def stars_without_metadata(plan: Any, text: str, calls: Collection[SourceCall]) -> Iterator[Replacement]:
    """The stars of a parsed query that stand for the rows of one of these calls, each without the hidden column."""
    starts = {call.start for call in calls}
    for node in plan_nodes(plan):
        kind = _kind(node)
        if kind not in ("Project", "Aggregate"):
            continue
        direct = [call for child in items(node.children()) for call in _direct(child) if call.start in starts]
        names = {(call.alias or call.function).lower() for call in direct}
        selected = node.projectList() if kind == "Project" else node.aggregateExpressions()
        for expression in items(selected) if direct else ():
            for part in expression_nodes(expression):
                if _kind(part) in ("UnresolvedStar", "UnresolvedStarExceptOrReplace"):
                    yield from _without(part, text, names)


def _direct(node: Any) -> Iterator[SourceCall]:
    """The calls whose rows a query block takes as they come."""
    if _kind(node) in _BLOCKS:
        return
    if _kind(node) == "UnresolvedTableValuedFunction":
        yield from source_calls(node)
    alias = str(node.alias()) if _kind(node) == "SubqueryAlias" else ""
    for child in items(node.children()):
        for call in _direct(child):
            yield replace(call, alias=alias) if alias else call


def _without(star: Any, text: str, names: set[str]) -> Iterator[Replacement]:
    start, stop = int(star.origin().startIndex().get()), int(star.origin().stopIndex().get())
    written = text[start : stop + 1]
    qualifier = written.partition("*")[0].strip(" .`\n\t").lower()
    if qualifier and qualifier not in names:
        return
    if _kind(star) == "UnresolvedStar":
        yield Replacement(start, stop, f"{written} EXCEPT ({METADATA})")
    else:
        yield Replacement(start, stop, f"{written.rstrip()[:-1]}, {METADATA})")


def _kind(node: Any) -> str:
    return class_name(node).rpartition(".")[2]
