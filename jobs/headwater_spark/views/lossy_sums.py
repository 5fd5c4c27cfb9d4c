"""Sums that are NULL where they were too large for their type: such a NULL does not say that there was no value.

``try_sum`` gives them, and without ANSI mode any sum of decimals may be one. Nothing can be added to them: their groups are computed anew.

Decision 0210.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headwater_spark.views.plan_description import Expr, Node

# What stands in a plan's description for them: Spark's own calls all of them Sum.
LOSSY_SUM = "LossySum"
# How a plan's text has one.
TRY_SUM = "try_sum("


def with_lossy_sums(node: Node) -> Node:
    """A plan in whose description each sum may be such a one."""
    fields = {name: _marked(value) for name, value in node.fields.items()}
    return replace(node, fields=fields, children=tuple(with_lossy_sums(child) for child in node.children))


def _marked(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_marked(one) for one in value)
    if not isinstance(value, Expr):
        return value
    kind = LOSSY_SUM if value.kind == "Sum" else value.kind
    return replace(value, kind=kind, children=tuple(_marked(child) for child in value.children))
