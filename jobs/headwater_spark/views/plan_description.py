"""An analysed plan as plain values, read from the JSON that Spark gives of it: what is decided from it needs no Spark.

Decision 0162.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

# Operators that hand on the rows of the one below as they are.
PASSING = frozenset(
    {
        "View",
        "SubqueryAlias",
        "Sort",
        "RebalancePartitions",
        "Repartition",
        "RepartitionByExpression",
        "ResolvedHint",
        "PipeOperator",
    }
)
# Operators that compare whole rows of two inputs, column by column in their order.
SET_OPERATIONS = frozenset({"Intersect", "Except"})


@dataclass(frozen=True, eq=False)
class Expr:
    """An expression. ``kind``: its class; ``fields``: what else the JSON says; ``plans``: of a subquery, its plan."""

    kind: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    children: tuple[Expr, ...] = ()
    plans: tuple[Node, ...] = ()

    @cached_property
    def id(self) -> int | None:
        """Of a named expression, the id under which others refer to it."""
        described = self.fields.get("exprId")
        return int(described["id"]) if isinstance(described, Mapping) else None

    @property
    def name(self) -> str:
        """The name of a column or alias."""
        return str(self.fields.get("name", ""))

    def walk(self) -> Iterator[Expr]:
        """The expression and all its parts; plans of subqueries are not entered."""
        yield self
        for child in self.children:
            yield from child.walk()

    @cached_property
    def references(self) -> frozenset[int]:
        """The ids of the columns that it reads; what a subquery reads of its own is none."""
        ids = {part.id for part in self.walk() if part.kind == "AttributeReference"}
        return frozenset(number for number in ids if number is not None)

    def has(self, *kinds: str) -> bool:
        """Whether a part of it is of one of these classes."""
        return any(part.kind in kinds for part in self.walk())

    @property
    def has_subquery(self) -> bool:
        """Whether a part of it is a query of its own."""
        return any(part.plans for part in self.walk())


@dataclass(frozen=True, eq=False)
class Node:
    """An operator. ``number``: its place in the order of the plan, from the top; ``fields``: expressions and plain values."""

    kind: str
    number: int = 0
    fields: Mapping[str, Any] = field(default_factory=dict)
    children: tuple[Node, ...] = ()

    def walk(self) -> Iterator[Node]:
        """The operator and all below it; plans of subqueries are not entered."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def leaves(self) -> list[Node]:
        """Where rows come from, left to right."""
        return [node for node in self.walk() if not node.children]

    @cached_property
    def leaf_numbers(self) -> frozenset[int]:
        """The numbers of the leaves."""
        own = frozenset({self.number}) if not self.children else frozenset[int]()
        return own.union(*(child.leaf_numbers for child in self.children))

    def exprs(self, name: str) -> tuple[Expr, ...]:
        """The expressions of a field."""
        return self._exprs.get(name, ())

    @cached_property
    def _exprs(self) -> dict[str, tuple[Expr, ...]]:
        """The expressions of each field: plans of thousands of columns are asked for them once for each column."""
        listed = {
            name: value if isinstance(value, tuple) else (value,) for name, value in self.fields.items()
        }
        return {
            name: tuple(one for one in values if isinstance(one, Expr)) for name, values in listed.items()
        }

    @property
    def expressions(self) -> Iterator[Expr]:
        """All its expressions."""
        for name in self.fields:
            yield from self.exprs(name)

    @property
    def join_type(self) -> str:
        """Of a join: Inner, LeftOuter, ..."""
        return str(self.fields.get("joinType", ""))

    @cached_property
    def output(self) -> tuple[int, ...]:  # noqa: PLR0911 - one return a kind of operator
        """The ids of its columns, in their order; empty for an operator that is not known here."""
        if self.kind == "Project":
            return _ids(self.exprs("projectList"))
        if self.kind == "Aggregate":
            return _ids(self.exprs("aggregateExpressions"))
        if self.kind == "Window":
            return (*self.children[0].output, *_ids(self.exprs("windowExpressions")))
        if self.kind == "Generate":
            return (*self.children[0].output, *_ids(self.exprs("generatorOutput")))
        if self.kind == "LateralJoin":
            made = [plan.output for one in self.exprs("right") for plan in one.plans]
            return (*self.children[0].output, *made[0]) if made else ()
        if self.kind == "Join":
            left, right = self.children
            return (
                left.output if self.join_type in ("LeftSemi", "LeftAnti") else (*left.output, *right.output)
            )
        if not self.children or self.kind == "Expand":
            return _ids(self.exprs("output"))
        passing = (
            self.kind in PASSING
            or self.kind in SET_OPERATIONS
            or self.kind in ("Filter", "Distinct", "Union", "Deduplicate")
        )
        return self.children[0].output if passing else ()

    @cached_property
    def output_ids(self) -> frozenset[int]:
        """The ids of its columns."""
        return frozenset(self.output)

    @cached_property
    def places(self) -> Mapping[int, tuple[int, ...]]:
        """Where each of its columns stands, by its id; the same column may stand in several places."""
        standing: dict[int, tuple[int, ...]] = {}
        for place, number in enumerate(self.output):
            standing[number] = (*standing.get(number, ()), place)
        return standing

    @property
    def projections(self) -> list[tuple[Expr, ...]]:
        """Of an Expand, what each of its rows is made of, column by column; empty where that is not known."""
        columns, parts = len(self.exprs("output")), self.exprs("projections")
        return [parts[first : first + columns] for first in range(0, len(parts), columns)] if columns else []

    @property
    def subquery_plans(self) -> Iterator[Node]:
        """The plans of subqueries in the expressions of this operator and of those below, theirs included."""
        for node in self.walk():
            for expression in node.expressions:
                for part in expression.walk():
                    for plan in part.plans:
                        yield plan
                        yield from plan.subquery_plans


def _ids(expressions: tuple[Expr, ...]) -> tuple[int, ...]:
    return tuple(one.id if one.id is not None else -1 for one in expressions)


def is_distinct(node: Node) -> bool:
    """Whether an operator leaves one of each set of equal rows, whichever way it is written."""
    if node.kind == "Deduplicate":
        return {one.id for one in node.exprs("keys")} >= set(node.output)
    return node.kind == "Distinct"


def read_plan(text: str, projections: Mapping[int, Sequence[str]] | None = None) -> Node:
    """The plan that Spark's ``toJSON`` describes.

    Args:
        text: of the plan.
        projections: of each Expand (by its number), the texts of what its rows are made of, one after the other: the plan's own
            text leaves them out.

    Raises:
        ValueError: it is no such text.
    """
    parts = json.loads(text)
    if not isinstance(parts, list) or not parts:
        raise ValueError("a plan is a list of operators")
    return _Operators(parts, projections or {}).node()


class _Operators:
    """Puts the operators of a plan together, which the JSON lists from the top, each before those below it."""

    def __init__(
        self, parts: list[Mapping[str, Any]], projections: Mapping[int, Sequence[str]] | None = None
    ) -> None:
        self._parts = iter(enumerate(parts))
        self._projections = projections or {}

    def node(self) -> Node:
        number, part = next(self._parts)
        children = tuple(self.node() for _ in range(int(part["num-children"])))
        fields = {
            key: _field(value) for key, value in part.items() if key not in ("class", "num-children", "child")
        }
        if number in self._projections:
            texts = self._projections[number]
            fields["projections"] = tuple(_expression(iter(json.loads(text))) for text in texts)
        return Node(_simple(part["class"]), number, fields, children)


def _field(value: Any) -> Any:
    if _is_tree(value):
        return _expression(iter(value))
    if isinstance(value, list) and value and all(_is_tree(one) for one in value):
        return tuple(_expression(iter(one)) for one in value)
    if isinstance(value, Mapping) and set(value) == {"object"}:
        return _simple(str(value["object"])).removesuffix("$")
    return tuple(value) if isinstance(value, list) else value


def _is_tree(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, Mapping) and "num-children" in one for one in value)
    )


def _expression(parts: Iterator[Mapping[str, Any]]) -> Expr:
    part = next(parts)
    children = tuple(_expression(parts) for _ in range(int(part["num-children"])))
    plans, fields = [], {}
    for key, value in part.items():
        if key in ("class", "num-children"):
            continue
        if key == "plan" and _is_tree(value):
            plans.append(_Operators(value).node())
        else:
            fields[key] = _plain(value)
    return Expr(_simple(part["class"]), fields, children, tuple(plans))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping) and set(value) == {"object"}:
        return _simple(str(value["object"])).removesuffix("$")
    # An expression that is no child of the other, as the order inside of an aggregate.
    return _expression(iter(value)) if _is_tree(value) else value


def _simple(name: str) -> str:
    return name.removesuffix("$").rpartition(".")[2].rpartition("$")[2]
