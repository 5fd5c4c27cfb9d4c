"""What the condition of a join says of the columns of its two sides."""

from __future__ import annotations

from collections.abc import Iterator

from headwater_spark.views.plan_description import PASSING, Expr, Node

# Types of which equal values are the same to whatever is made of them: of others zero has a sign. Texts with a collation are marked.
_EXACT = frozenset(
    {"byte", "short", "integer", "long", "string", "date", "boolean", "timestamp", "timestamp_ntz"}
)


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
    there = own.output_ids
    equal: dict[int, int] = {}
    for first, second in _equal(join_condition(node)):
        one, another = (first, second) if first in there else (second, first)
        if one in there and another not in there:
            equal.setdefault(another, one)
    other = node.children[1] if own is node.children[0] else node.children[0]
    pairs = list(_equal_inside(other))
    # What is equal to one of these there is equal to the same column here.
    for _ in pairs:
        for first, second in (*pairs, *(pair[::-1] for pair in pairs)):
            if first in equal:
                equal.setdefault(second, equal[first])
    return equal


def _equal_inside(node: Node) -> Iterator[tuple[int, int]]:
    """The columns that are equal in each row of an operator's output, by the inner joins and filters that all its rows went through."""
    if node.kind == "Filter" or (node.kind == "Join" and node.join_type in ("Inner", "Cross")):
        yield from _equal(join_condition(node))
    elif node.kind not in PASSING:
        return
    for child in node.children:
        yield from _equal_inside(child)


def _equal(condition: Expr | None) -> Iterator[tuple[int, int]]:
    """The pairs of columns that a condition says are equal, of types of which that means the same value."""
    for part in conjuncts(condition):
        if part.kind not in ("EqualTo", "EqualNullSafe"):
            continue
        kinds = {str(side.fields.get("dataType", "")) for side in part.children}
        exact = len(kinds) == 1 and all(kind in _EXACT or kind.startswith("decimal(") for kind in kinds)
        first, second = (side.id for side in part.children)
        plain = all(side.kind == "AttributeReference" for side in part.children)
        if plain and exact and first is not None and second is not None:
            yield first, second


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
    there = side.output_ids
    return wanted & there, wished & there
