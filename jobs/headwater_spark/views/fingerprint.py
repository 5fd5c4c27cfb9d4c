"""What decides about a view's rows besides its sources' rows, as a digest: an edit that changes none of it recomputes nothing.

Decision 0162.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeGuard

from headwater_spark.views.plan_description import Expr, Node

# How a query reads its tables, and what counts the rows of a view with rules: under names that are made up each time.
_UNSAID = ("View", "SubqueryAlias", "CollectMetrics")
_IDS = re.compile(r"#(\d+)L?")
# Lambdas have variables that Spark numbers through.
_LAMBDA = re.compile(r"\b([xyz])_\d+")
# Java prints bytes as where they lie, which is another place each time. What they are, the plan's own text says.
_BYTES = re.compile(r"\[B@[0-9a-f]+")
_INDENT = re.compile(r"^[\s:+\-|]*")
_DROPPED = ("resultId", "qualifier", "jvmId", "createTime", "desc")


def plan_fingerprint(root: Node, text: str, leaves: Sequence[str], more: Iterable[str]) -> str:
    """The digest of a query.

    Args:
        root: its plan.
        text: the plan as Spark prints it, which says of some expressions what the description does not.
        leaves: what its leaves read, in the order of the plan, subqueries' behind.
        more: what else decides about the rows: functions, rules, the table's columns.
    """
    numbers = _Numbers()
    digest = hashlib.sha256()
    described = _node(root, numbers)
    for part in (_BYTES.sub("", json.dumps(described)), *_lines(text, numbers), *leaves, *more):
        digest.update(part.encode("utf-8", "backslashreplace") + b"\0")
    return digest.hexdigest()


def has_bytes(text: str) -> bool:
    """Whether a text has bytes in it as Java prints them, so that it does not say what they are."""
    return _BYTES.search(text) is not None


class _Numbers:
    """Ids of columns by the order of their first use."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}

    def has(self, number: int | None) -> TypeGuard[int]:
        """Whether a column was used so far: all uses stand above the leaf that it comes from."""
        return number in self._known

    def of(self, number: int) -> int:
        return self._known.setdefault(number, len(self._known))


def _node(node: Node, numbers: _Numbers) -> Any:
    if node.kind in _UNSAID and len(node.children) == 1:
        return _node(node.children[0], numbers)
    below = [_node(child, numbers) for child in node.children]
    if not node.children:
        # Which columns a source has besides those that are used says nothing about the result.
        used = [
            [numbers.of(column.id), column.name] for column in node.exprs("output") if numbers.has(column.id)
        ]
        return [node.kind, used]
    fields = {
        key: _value(value, numbers) for key, value in sorted(node.fields.items()) if key not in _DROPPED
    }
    return [node.kind, fields, below]


def _value(value: Any, numbers: _Numbers) -> Any:
    if isinstance(value, Expr):
        return _expression(value, numbers)
    if isinstance(value, Node):
        return _node(value, numbers)
    if isinstance(value, tuple | list):
        return [_value(one, numbers) for one in value]
    if isinstance(value, Mapping):
        # Some expressions are described a second time inside of pairs, as the branches of a CASE.
        return {
            key: numbers.of(int(one["id"]))
            if key == "exprId" and isinstance(one, Mapping)
            else _value(one, numbers)
            for key, one in sorted(value.items())
            if key not in _DROPPED
        }
    return value


def _expression(one: Expr, numbers: _Numbers) -> Any:
    fields = {
        key: _value(value, numbers)
        for key, value in sorted(one.fields.items())
        if key not in (*_DROPPED, "exprId") and not (key == "name" and "Lambda" in one.kind)
    }
    identity = None if one.id is None else numbers.of(one.id)
    plans = [_node(plan, numbers) for plan in one.plans]
    return [one.kind, identity, fields, [_expression(child, numbers) for child in one.children], plans]


def _lines(text: str, numbers: _Numbers) -> Iterable[str]:
    for line in text.split("\n"):
        plain = _INDENT.sub("", line)
        if plain.startswith(("View (", "SubqueryAlias ", "CollectMetrics ", "Relation ")):
            continue
        plain = _IDS.sub(lambda match: f"#{numbers.of(int(match[1]))}", plain)
        yield _LAMBDA.sub(r"\1", plain)
