"""Plans as values, made by hand, and what they give from given rows: as little of a query engine as recipes are tested by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from headwater_spark.views.join_conditions import conjuncts, join_condition
from headwater_spark.views.plan_description import Expr, Node, is_distinct
from headwater_spark.views.recipes import (
    Columns,
    Joined,
    Leaf,
    Over,
    Padded,
    Recipe,
    Renamed,
    Rows,
    Together,
    Whole,
)
from headwater_spark.views.used_columns import used_columns

Row: TypeAlias = tuple[tuple[int, Any], ...]
Bag: TypeAlias = Counter[Row]


def column(number: int) -> Expr:
    """A column, by its id."""
    return Expr("AttributeReference", {"exprId": {"id": number}, "name": f"c{number}", "dataType": "integer"})


def named(value: Expr, number: int) -> Expr:
    """A value under an id."""
    return Expr("Alias", {"exprId": {"id": number}, "name": f"c{number}"}, (value,))


def equal(one: int, other: int) -> Expr:
    """Two columns are equal."""
    return Expr("EqualTo", {}, (column(one), column(other)))


def above(number: int, value: int) -> Expr:
    """A column is greater than a number."""
    return Expr(
        "GreaterThan", {}, (column(number), Expr("Literal", {"value": str(value), "dataType": "integer"}))
    )


def both(one: Expr, other: Expr) -> Expr:
    """Two conditions together."""
    return Expr("And", {}, (one, other))


def aggregate(kind: str, number: int, *, distinct: bool = False) -> Expr:
    """An aggregate over a column."""
    return Expr("AggregateExpression", {"isDistinct": distinct}, (Expr(kind, {}, (column(number),)),))


def leaf(*numbers: int) -> Node:
    """A table with columns of these ids."""
    return Node("LogicalRelation", 0, {"output": tuple(map(column, numbers))})


def project(child: Node, *outputs: Expr) -> Node:
    """Some columns."""
    return Node("Project", 0, {"projectList": outputs}, (child,))


def where(child: Node, condition: Expr) -> Node:
    """Rows that meet a condition."""
    return Node("Filter", 0, {"condition": condition}, (child,))


def join(left: Node, right: Node, how: str, condition: Expr) -> Node:
    """A join."""
    return Node("Join", 0, {"joinType": how, "condition": condition}, (left, right))


def group(child: Node, keys: tuple[int, ...], *outputs: Expr) -> Node:
    """Groups by columns."""
    return Node(
        "Aggregate",
        0,
        {"groupingExpressions": tuple(map(column, keys)), "aggregateExpressions": outputs},
        (child,),
    )


def window(child: Node, partition: int, made: int) -> Node:
    """How many rows are in the partition of each row, under the id ``made``."""
    fields = {
        "windowExpressions": (named(Expr("WindowExpression"), made),),
        "partitionSpec": (column(partition),),
    }
    return Node("Window", 0, fields, (child,))


def expand(child: Node, made: int, *columns: int) -> Node:
    """Each row twice: with the column ``columns[0]`` under the id ``made``, and with NULL there; the others are taken over."""
    first, *rest = columns
    nothing = Expr("Literal", {"value": None, "dataType": "integer"})
    kept = tuple(map(column, rest))
    fields = {"output": (*kept, column(made)), "projections": (*kept, column(first), *kept, nothing)}
    return Node("Expand", 0, fields, (child,))


def lateral(child: Node, number: int, made: int) -> Node:
    """Each row twice, beside a LATERAL subquery without a table: with one of its columns again, under the id ``made``, and with NULL."""
    inner = Node("Generate", 0, {"generatorOutput": (column(made),)}, (Node("OneRowRelation"),))
    subquery = Expr("LateralSubquery", {}, (column(number),), (inner,))
    return Node("LateralJoin", 0, {"joinType": "Inner", "right": subquery}, (child,))


def union(*children: Node) -> Node:
    """All rows of several."""
    return Node("Union", 0, {}, children)


def set_operation(kind: str, left: Node, right: Node) -> Node:
    """Intersect or Except, of all rows."""
    return Node(kind, 0, {"isAll": True}, (left, right))


def distinct(child: Node) -> Node:
    """Each row once."""
    return Node("Distinct", 0, {}, (child,))


def numbered(root: Node) -> Node:
    """The plan with the numbers of its operators, from the top."""
    counter = iter(range(1000))

    def number(node: Node) -> Node:
        own = next(counter)
        return replace(node, number=own, children=tuple(map(number, node.children)))

    return number(root)


def rows_of(node: Node, leaves: Mapping[int, Bag]) -> Bag:
    """What a plan gives; ``leaves``: the rows of each leaf, by its number."""
    if not node.children:
        return leaves[node.number]
    return _applied(node, [rows_of(child, leaves) for child in node.children])


def _applied(node: Node, inputs: list[Bag]) -> Bag:
    if node.kind == "Project":
        return _mapped(inputs[0], lambda row: _values(node.exprs("projectList"), row))
    if node.kind == "Filter":
        return Counter(
            {row: n for row, n in inputs[0].items() if _true(node.exprs("condition")[0], dict(row))}
        )
    if is_distinct(node):
        return Counter(dict.fromkeys(inputs[0], 1))
    if node.kind == "Expand":
        made = [
            _mapped(
                inputs[0],
                lambda row, parts=parts: tuple(
                    (number, _value(one, dict(row), None))
                    for number, one in zip(node.output, parts, strict=True)
                ),
            )
            for parts in node.projections
        ]
        return sum(made, Counter())
    if node.kind == "LateralJoin":
        number, made = node.exprs("right")[0].children[0].id or 0, node.output[-1]
        again = _mapped(inputs[0], lambda row: (*row, (made, dict(row)[number])))
        return again + _mapped(inputs[0], lambda row: (*row, (made, None)))
    if node.kind == "Union":
        return sum(
            (
                _mapped(rows, lambda row: tuple(zip(node.output, (v for _, v in row), strict=True)))
                for rows in inputs
            ),
            Counter(),
        )
    if node.kind in ("Intersect", "Except"):
        other = _mapped(inputs[1], lambda row: tuple(zip(node.output, (v for _, v in row), strict=True)))
        return inputs[0] & other if node.kind == "Intersect" else inputs[0] - other
    if node.kind == "Join":
        left, right = node.children
        return _join(node.join_type, conjuncts(join_condition(node)), inputs, right.output, left.output)
    groups: dict[Any, Bag] = {}
    keys = [
        one.id for one in node.exprs("groupingExpressions" if node.kind == "Aggregate" else "partitionSpec")
    ]
    for row, times in inputs[0].items():
        groups.setdefault(tuple(dict(row)[key] for key in keys), Counter())[row] += times
    made: Bag = Counter()
    for members in groups.values():
        if node.kind == "Window":
            size = sum(members.values())
            out = node.output[-1]
            made.update(Counter({(*row, (out, size)): n for row, n in members.items()}))
        else:
            made[_values(node.exprs("aggregateExpressions"), next(iter(members)), members)] += 1
    return made


def _join(how: str, parts: list[Expr], inputs: list[Bag], right_ids: Any, left_ids: Any) -> Bag:
    made: Bag = Counter()
    matched_right = set()
    for left, n in inputs[0].items():
        partners = [
            (right, m)
            for right, m in inputs[1].items()
            if all(_true(part, dict(left) | dict(right)) for part in parts)
        ]
        matched_right.update(right for right, _ in partners)
        if how in ("LeftSemi", "LeftAnti"):
            if bool(partners) == (how == "LeftSemi"):
                made[left] += n
            continue
        for right, m in partners:
            made[*left, *right] += n * m
        if not partners and how in ("LeftOuter", "FullOuter"):
            made[*left, *((number, None) for number in right_ids)] += n
    if how in ("RightOuter", "FullOuter"):
        for right, m in inputs[1].items():
            if right not in matched_right:
                made[*((number, None) for number in left_ids), *right] += m
    return made


def _values(outputs: tuple[Expr, ...], row: Row, members: Bag | None = None) -> Row:
    return tuple((one.id or 0, _value(one, dict(row), members)) for one in outputs)


def _value(one: Expr, row: Mapping[int, Any], members: Bag | None) -> Any:
    inner = one.children[0] if one.kind == "Alias" else one
    if inner.kind == "AggregateExpression":
        number = inner.children[0].children[0].id
        values = [dict(member)[number] for member in (members or Counter()).elements()]
        return sum(value for value in values if value is not None)
    return None if inner.kind == "Literal" else row[inner.id or 0]


def _true(condition: Expr, row: Mapping[int, Any]) -> bool:
    if condition.kind == "And":
        return all(_true(part, row) for part in condition.children)
    first = row[condition.children[0].id or 0]
    second = condition.children[1]
    other = row[second.id or 0] if second.kind == "AttributeReference" else int(second.fields["value"])
    if first is None or other is None:
        return False
    return bool(first == other if condition.kind == "EqualTo" else first > other)


def _mapped(rows: Bag, change: Callable[[Row], Row]) -> Bag:
    made: Bag = Counter()
    for row, times in rows.items():
        made[change(row)] += times
    return made


def recipe_rows(
    recipe: Recipe,
    root: Node,
    before: Mapping[int, Bag],
    after: Mapping[int, Bag],
    *,
    grown: bool = False,
    needed: frozenset[int] | None = None,
) -> Bag:
    """What a recipe gives, from what the leaves had before and have now.

    Args:
        grown: new rows are read with all their columns.
        needed: rows that changed have these columns alone, and each set of values once.
    """
    nodes = {node.number: node for node in root.walk()}
    used = used_columns(root)

    def read(number: int, rows: Bag) -> Bag:
        """Columns that nothing uses are not read."""
        return _mapped(rows, lambda row: tuple((n, value) for n, value in row if grown or n in used[number]))

    def build(one: Recipe) -> Bag:
        match one:
            case Leaf(number, Rows.CHANGED):
                changed = read(number, (before[number] - after[number]) + (after[number] - before[number]))
                if needed is None:
                    return changed
                return Counter(tuple((n, value) for n, value in row if n in needed) for row in set(changed))
            case Leaf(number, _):
                return read(number, before[number] | after[number])
            case Whole(number):
                return rows_of(nodes[number], after)
            case Over(number, children):
                return _applied(nodes[number], [build(child) for child in children])
            case Columns(number, places, child):
                node = nodes[number]
                outputs = node.exprs("projectList" if node.kind == "Project" else "aggregateExpressions")
                return _mapped(
                    build(child), lambda row: _values(tuple(outputs[place] for place in places), row)
                )
            case Renamed(_, old, new, child):
                return _mapped(
                    build(child), lambda row: tuple((n, dict(row)[o]) for o, n in zip(old, new, strict=True))
                )
            case Padded(ids, nulls, child):
                return _mapped(
                    build(child),
                    lambda row: tuple((n, None if n in nulls else dict(row)[n]) for n in ids),
                )
            case Together(parts):
                return sum(
                    (_mapped(build(part), lambda row: tuple(sorted(row))) for part in parts), Counter()
                )
            case Joined(number, how, left, right, places):
                parts = conjuncts(join_condition(nodes[number]))
                sides = [build(left), build(right)]
                ids = [_ids(side) for side in sides]
                return _join(how, [parts[place] for place in places], sides, ids[1], ids[0])

    return build(recipe)


def _ids(rows: Bag) -> list[int]:
    return [number for number, _ in next(iter(rows), ())]
