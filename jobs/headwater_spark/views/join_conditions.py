"""What the condition of a join says of the columns of its two sides."""

from __future__ import annotations

from headwater_spark.views.plan_description import Expr, Node

# Types of which equal values are the same to whatever is made of them: of others zero has a sign, and texts a collation.
_EXACT = frozenset({"byte", "short", "integer", "long", "date", "boolean", "timestamp", "timestamp_ntz"})


def conjuncts(condition: Expr | None) -> list[Expr]:
    """The parts of a condition that must all be true."""
    if condition is None:
        return []
    if condition.kind == "And":
        return [part for child in condition.children for part in conjuncts(child)]
    return [condition]


def join_condition(node: Node) -> Expr | None:
    """The condition of a join."""
    return next(iter(node.exprs("condition")), None)


def condition_references(node: Node) -> frozenset[int]:
    """The columns that the condition of a join reads."""
    condition = join_condition(node)
    return frozenset() if condition is None else condition.references


def equal_columns(node: Node, own: Node) -> dict[int, int]:
    """Columns of the other side of a join that are equal to a column of this one, in type and in each pair of rows."""
    there = frozenset(own.output)
    equal: dict[int, int] = {}
    for part in conjuncts(join_condition(node)):
        if part.kind not in ("EqualTo", "EqualNullSafe"):
            continue
        one, other = part.children if part.children[0].id in there else part.children[::-1]
        kinds = {str(side.fields.get("dataType", "")) for side in (one, other)}
        if one.kind != "AttributeReference" or other.kind != "AttributeReference" or len(kinds) > 1:
            continue
        exact = all(kind in _EXACT or kind.startswith("decimal(") for kind in kinds)
        if exact and one.id in there and other.id is not None and other.id not in there:
            equal.setdefault(other.id, int(one.id or 0))
    return equal


def is_equality(part: Expr, one: frozenset[int], other: frozenset[int]) -> bool:
    """Whether a part of a condition compares columns of the one side with columns of the other."""
    if part.kind not in ("EqualTo", "EqualNullSafe"):
        return False
    first, second = (child.references for child in part.children)
    if not first or not second:
        return False
    return (first <= one and second <= other) or (first <= other and second <= one)


def part_of(
    side: Node, wanted: frozenset[int], wished: frozenset[int]
) -> tuple[frozenset[int], frozenset[int]]:
    """Of columns that are wanted, and of those that are wished for, those of one side."""
    there = frozenset(side.output)
    return wanted & there, wished & there
