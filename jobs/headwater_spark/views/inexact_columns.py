"""Columns of which equal values need not be the same: zero and minus zero, texts with a collation, windows of sessions.

Rows of one group or partition are equal in such a column, and what is made of it may differ between them: what a changed
row has there says nothing of the group. Spark itself hands conditions on what is made of it down to the rows, too.

Decision 0210.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from headwater_spark.views.appended_rows import same
from headwater_spark.views.plan_description import SET_OPERATIONS, Expr, Node, is_distinct

# What stands in a plan's description for a text with a collation.
COLLATED = "string collate"
_KINDS = ("double", "float", COLLATED)
# What Spark calls a session's window; that it is one, which the column itself knows, its description leaves out.
_SESSION = "session_window"


def inexact_columns(root: Node) -> frozenset[int]:
    """The ids of all such columns that a plan reads anywhere."""
    return frozenset(
        part.id
        for node in root.walk()
        for expression in node.expressions
        for part in expression.walk()
        if part.kind == "AttributeReference" and part.id is not None and _is_inexact(part)
    )


def blurred(node: Node, inexact: frozenset[int]) -> frozenset[int]:
    """The columns of an operator's output that a row of its input does not know the value of, since equal ones are put together."""
    groups = node.kind in ("Aggregate", "Window", *SET_OPERATIONS) or is_distinct(node)
    return inexact if groups else frozenset()


def names_group(output: Expr, keys: Sequence[Expr], inexact: frozenset[int]) -> bool:
    """Whether each row of a group has the same value of an output, as the group has it."""
    inner = output.children[0] if output.kind == "Alias" else output
    if any(same(inner, key) for key in keys if key.id not in inexact):
        return True
    made = [key for key in keys if key.kind != "AttributeReference" and _may_be_inexact(key)]
    return not output.references & inexact and not any(
        same(part, key) for part in inner.walk() for key in made
    )


def partition_keys(window: Node) -> frozenset[int]:
    """The columns that all rows of a partition have in common: those that they are put together by, and what is made as these are."""
    named = [one for one in window.exprs("partitionSpec") if one.kind == "AttributeReference"]
    keys = frozenset(one.id for one in named if one.id is not None)
    below = window.children[0]
    while below.kind == "Window":
        below = below.children[0]
    # Spark has what stands in PARTITION BY beside the same in the SELECT list: there it may have another name.
    outputs = below.exprs("projectList" if below.kind == "Project" else "aggregateExpressions")
    made = [one for one in outputs if one.kind == "Alias" and one.id is not None]
    alike = [*named, *(one.children[0] for one in made if one.id in keys)]
    return keys | {
        one.id for one in made if one.id is not None and any(same(one.children[0], other) for other in alike)
    }


def with_collations(node: Node, collated: Collection[int]) -> Node:
    """A plan in whose description the columns with these ids have a collation: Spark's own leaves it out."""
    fields = {name: _marked(value, collated) for name, value in node.fields.items()}
    return replace(
        node, fields=fields, children=tuple(with_collations(child, collated) for child in node.children)
    )


def _marked(value: Any, collated: Collection[int]) -> Any:
    if isinstance(value, tuple):
        return tuple(_marked(one, collated) for one in value)
    if not isinstance(value, Expr):
        return value
    own = {"dataType": COLLATED} if value.kind == "AttributeReference" and value.id in collated else {}
    children = tuple(_marked(child, collated) for child in value.children)
    return replace(value, fields={**value.fields, **own}, children=children)


def _may_be_inexact(key: Expr) -> bool:
    """Whether something that is made of columns may be such a value; its type stands in the parts that change it."""
    return any(
        part.kind == "Collate" or any(word in repr(part.fields) for word in _KINDS) for part in key.walk()
    )


def _is_inexact(column: Expr) -> bool:
    kind = repr(column.fields.get("dataType", ""))
    return column.name == _SESSION or any(word in kind for word in _KINDS)
