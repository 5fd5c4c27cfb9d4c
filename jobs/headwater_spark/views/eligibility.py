"""Whether a view can ever be refreshed by what changed, and by which technique for each of its sources: from its plan alone."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from headwater.incremental.techniques import Issue, IssueType, Technique
from headwater_spark.views.appended_rows import Grouped, Merging, appended, grouped
from headwater_spark.views.key_columns import KeyColumns
from headwater_spark.views.key_conditions import usable
from headwater_spark.views.plan_description import Node
from headwater_spark.views.plan_shape import anchor, not_traceable, shape_issues
from headwater_spark.views.touched_rows import Tracing
from headwater_spark.views.traced_answers import NotTraceable

_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
# Decimals have no more digits than this; behind the point a result that would keeps at least so many.
_MOST_DIGITS, _KEPT_DIGITS = 38, 6


@dataclass(frozen=True)
class LeafTechniques:
    """What can be done when one read of a source changes. None: the view is recomputed.

    Args:
        leaf: its number in the plan.
        grown: where it only got new rows; ``changed``: where rows of it changed or went.
        columns: the places of the result's columns by which the changed part is found.
    """

    leaf: int
    grown: Technique | None
    changed: Technique | None
    columns: tuple[int, ...]


def leaf_techniques(root: Node, types: Sequence[str]) -> list[LeafTechniques]:
    """The techniques for each leaf that is a table, where it alone changed.

    Args:
        types: of the result's columns, as Spark prints them.
    """
    leaves = []
    for node in root.leaves:
        if node.kind != "LogicalRelation":
            continue
        tracing = Tracing(frozenset({node.number}))
        columns = tuple(
            place
            for place, kind in enumerate(types)
            if usable(kind) and _traced(tracing, root, node.number, place)
        )
        changed = anchor(root) if columns else None
        grown = changed
        if appended(root, node.number) is not None:
            grown = Technique.APPEND_ONLY
        elif (groups := grouped(root, node.number)) is not None and mergeable(groups, types):
            grown = Technique.GROUP_AGGREGATE
        leaves.append(LeafTechniques(node.number, grown, changed, columns))
    return leaves


def mergeable(groups: Grouped, types: Sequence[str]) -> bool:
    """Whether the values of groups can be brought up to date exactly, by the types of the result's columns."""
    return all(
        kind == "bigint" or _adds_exactly(kind) if how is Merging.SUM else usable(kind)
        for how, kind in zip(groups.columns, types, strict=True)
    )


def _adds_exactly(kind: str) -> bool:
    """Whether two sums of a decimal type are added without rounding: Spark leaves digits out of what has more than 38."""
    decimal = _DECIMAL.fullmatch(kind)
    return decimal is not None and (int(decimal[1]) < _MOST_DIGITS or int(decimal[2]) <= _KEPT_DIGITS)


def traced(root: Node, leaf: int, place: int) -> bool:
    """Whether a column of the result says where rows of a leaf show, if it alone changed."""
    return _traced(Tracing(frozenset({leaf})), root, leaf, place)


def _traced(tracing: Tracing, root: Node, leaf: int, place: int) -> bool:
    try:
        tracing.touched(root, leaf, frozenset({root.output[place]}), frozenset())
    except NotTraceable:
        return False
    return True


def never_incremental(
    root: Node, types: Sequence[str], undetermined: Collection[str], tables: Mapping[int, str] | None = None
) -> list[Issue]:
    """Why no refresh of a view can ever be incremental; empty where one may be.

    Args:
        tables: where each leaf's table lies, by the leaf's number; a leaf that is not there is no table. None: each is one of its own.
    """
    issues = shape_issues(root, undetermined)
    if issues:
        return issues
    reads: dict[str, list[LeafTechniques]] = {}
    for leaf in leaf_techniques(root, types):
        if tables is None or leaf.leaf in tables:
            reads.setdefault(str(leaf.leaf) if tables is None else tables[leaf.leaf], []).append(leaf)
    if not reads:
        return [Issue(IssueType.INPUT_NOT_IN_DELTA, "the query reads no Delta table", lasting=True)]
    if any(_is_followed(root, types, leaves) for leaves in reads.values()):
        return []
    alone = any(leaf.grown or leaf.changed for leaves in reads.values() for leaf in leaves)
    return [not_traceable(root, several_reads=alone)]


def _is_followed(root: Node, types: Sequence[str], leaves: Sequence[LeafTechniques]) -> bool:
    """Whether what changes of a table can be followed, where it alone changes: in all its reads at once."""
    if len(leaves) == 1:
        return bool(leaves[0].grown or leaves[0].changed)
    names = [str(place) for place in range(len(types))]
    return bool(KeyColumns(root, [one.leaf for one in leaves], types, names).possible())
