"""``_metadata`` of files that SQL text reads, through a function or as a table: a hidden column, which the view over the rows has to carry openly.

A star over such a view would bring it along, where a star over the files does not: it is taken out of those stars.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from headwater_spark.facade.colon_paths import Replacement
from headwater_spark.facade.sql_sources import source_calls
from headwater_spark.plans.plan_walk import class_name, expression_nodes, items, plan_nodes, table_references

METADATA = "_metadata"
_NAMED = re.compile(rf"(?<![\w`.]){METADATA}\b|\.\s*{METADATA}\b", re.IGNORECASE)
# Where a query's own rows begin: what is below them has no hidden column any more.
_BLOCKS = {"Project", "Aggregate", "Union", "Intersect", "Except", "UnresolvedWith", "Distinct"}


def names_metadata(text: str) -> bool:
    """Whether a SQL text may name the hidden column."""
    return _NAMED.search(text) is not None


def rows_with_metadata(
    files: Mapping[int, DataFrame], tables: Mapping[int, DataFrame]
) -> dict[int, DataFrame]:
    """The rows that have the hidden column, each with it among the others, by where their source stands in the text.

    Tables are given it where nothing else has one that the text may mean: to name it without its table would be ambiguous.

    Args:
        files: what calls read; ``tables``: what is named as a table.
    """
    if any(METADATA in frame.columns for frame in (*files.values(), *tables.values())):
        tables = {}
    return _carrying(files) or _carrying(tables)


def _carrying(frames: Mapping[int, DataFrame]) -> dict[int, DataFrame]:
    shown = {start: _with_metadata(frame) for start, frame in frames.items() if METADATA not in frame.columns}
    return {start: frame for start, frame in shown.items() if frame is not None}


def _with_metadata(frame: DataFrame) -> DataFrame | None:
    try:
        return frame.select("*", METADATA)
    except PySparkException:
        return None


def stars_without_metadata(plan: Any, text: str, carrying: Collection[int]) -> Iterator[Replacement]:
    """The stars of a parsed query that stand for rows with that column, each without it.

    Args:
        carrying: where in the text the calls and tables stand whose rows have it.
    """
    for node in plan_nodes(plan):
        kind = _kind(node)
        if kind not in ("Project", "Aggregate"):
            continue
        direct = [one for child in items(node.children()) for one in _direct(child) if one.start in carrying]
        names = {one.name.lower() for one in direct}
        selected = node.projectList() if kind == "Project" else node.aggregateExpressions()
        for expression in items(selected) if direct else ():
            for part in expression_nodes(expression):
                if _kind(part) in ("UnresolvedStar", "UnresolvedStarExceptOrReplace"):
                    yield from _without(part, text, names)


@dataclass(frozen=True)
class _Rows:
    """Rows that a query block takes as they come: where their source stands in the text, and what stars call it."""

    start: int
    name: str


def _direct(node: Any) -> Iterator[_Rows]:
    kind = _kind(node)
    if kind in _BLOCKS:
        return
    if kind == "UnresolvedTableValuedFunction":
        yield from (_Rows(call.start, call.alias or call.function) for call in source_calls(node))
    if kind == "UnresolvedRelation":
        yield from (_Rows(table.start, table.parts[-1]) for table in table_references(node))
    alias = str(node.alias()) if kind == "SubqueryAlias" else ""
    for child in items(node.children()):
        for rows in _direct(child):
            yield replace(rows, name=alias) if alias else rows


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
