"""What Spark's optimizer asks of each table of a plan, read from the plan: nothing is rewritten here, and no data is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from headwater.delta_log.file_bounds import Sought, Value
from headwater_spark.plans.plan_walk import descends_from, items, simple_name

# Types whose values have bounds that are compared as they are.
_NUMBERS = {"tinyint", "smallint", "int", "bigint", "date", "timestamp", "timestamp_ntz"}
_FIXED_LENGTH = "__CHAR_VARCHAR_TYPE_STRING"
_LOW, _HIGH = ("GreaterThan", "GreaterThanOrEqual"), ("LessThan", "LessThanOrEqual")


def pushed_conditions(optimized: Any) -> dict[str, list[Sought]]:
    """The values that each labelled table of an optimized plan is asked for, by its label (see ``rows_of_files``).

    A correlated subquery may make the optimizer read a table a second time, for other rows: nothing is said of it then.
    """
    by_label: dict[str, list[Sought]] = {}
    reads: Counter[str] = Counter()
    for node in _nodes(optimized):
        label = _label(node)
        if label is not None:
            reads[label] += 1
        if simple_name(node) != "Filter":
            continue
        (child,) = items(node.children())
        label = _label(child)
        if label is not None:
            by_label[label] = list(_sought(node.condition()))
    return {label: sought for label, sought in by_label.items() if reads[label] == 1}


def _label(node: Any) -> str | None:
    """The label of a table, None of anything else."""
    if simple_name(node) != "LogicalRelation" or not descends_from(node.relation(), "HadoopFsRelation"):
        return None
    location = node.relation().location()
    return str(location.actionType()) if simple_name(location) == "TahoeBatchFileIndex" else None


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    for child in items(plan.children()):
        yield from _nodes(child)


def _sought(condition: Any) -> Iterator[Sought]:
    lows: dict[str, Value] = {}
    highs: dict[str, Value] = {}
    for part in _conjuncts(condition):
        kind = simple_name(part)
        if kind in _LOW + _HIGH:
            bound = _compared(part)
            if bound is not None:
                (lows if kind in _LOW else highs)[bound[0]] = bound[1]
            continue
        one = _listed(part)
        if one is not None:
            yield one
    for column in lows.keys() & highs.keys():
        yield Sought(column, (lows[column], highs[column]), between=True)


def _conjuncts(condition: Any) -> Iterator[Any]:
    if simple_name(condition) == "And":
        yield from _conjuncts(condition.left())
        yield from _conjuncts(condition.right())
    else:
        yield condition


def _listed(part: Any) -> Sought | None:
    kind = simple_name(part)
    if kind == "Or":
        return _or_null(part)
    if kind == "IsNull":
        return Sought(_name(part.child()), (), null=True) if _is_column(part.child()) else None
    if kind == "EqualTo":
        same = _compared(part)
        return None if same is None else Sought(same[0], (same[1],))
    if kind not in ("In", "InSet"):
        return None
    column = part.value() if kind == "In" else part.child()
    if not _is_column(column):
        return None
    values = _literals(part.list()) if kind == "In" else _set(part.hset(), _type(column))
    return None if values is None else Sought(_name(column), tuple(sorted(values)))


def _or_null(part: Any) -> Sought | None:
    sides = part.left(), part.right()
    for one, other in (sides, sides[::-1]):
        if simple_name(one) == "IsNull" and _is_column(one.child()):
            listed = list(_sought(other))
            if len(listed) == 1 and listed[0].column == _name(one.child()):
                return Sought(listed[0].column, listed[0].values, True, listed[0].between)
    return None


def _compared(part: Any) -> tuple[str, Value] | None:
    """A column and a literal that are compared, the column first."""
    if not _is_column(part.left()) or simple_name(part.right()) != "Literal":
        return None
    value = _value(part.right())
    return None if value is None else (_name(part.left()), value)


def _literals(expressions: Any) -> list[Value] | None:
    values = [_value(one) if simple_name(one) == "Literal" else None for one in items(expressions)]
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) else None


def _set(values: Any, kind: str) -> list[Value] | None:
    """The values of a set as it is in the JVM, brought over as one text."""
    size = int(values.size())
    if kind in _NUMBERS:
        numbers = str(values.mkString(",")).split(",")
        return [int(one) for one in numbers if one != "null"]  # nothing equals NULL
    if kind != "string":
        return None
    texts = str(values.mkString("\0")).split("\0")
    return list(texts) if len(texts) == size else None


def _value(literal: Any) -> Value | None:
    value, kind = literal.value(), _type(literal)
    if value is None or (kind not in _NUMBERS and kind != "string"):
        return None
    return int(value) if kind in _NUMBERS else str(value.toString()) if not isinstance(value, str) else value


def _type(expression: Any) -> str:
    return str(expression.dataType().simpleString())


def _is_column(expression: Any) -> bool:
    if simple_name(expression) != "AttributeReference":
        return False
    kind = _type(expression)
    # Texts of a fixed length are compared with blanks behind them, which files need not have.
    return kind in _NUMBERS or (kind == "string" and not bool(expression.metadata().contains(_FIXED_LENGTH)))


def _name(column: Any) -> str:
    return str(column.name())
