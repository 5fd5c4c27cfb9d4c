"""Which values a table of an optimized plan is asked for: never fewer than the filter above it lets through."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from headwater.delta_log.file_bounds import Sought
from headwater_spark.views.pushed_conditions import pushed_conditions


class Sequence(list[Any]):
    """As Scala's."""

    def length(self) -> int:
        return len(self)

    def apply(self, place: int) -> Any:
        return self[place]

    def size(self) -> int:
        return len(self)

    def mkString(self, between: str) -> str:  # noqa: N802 - Scala's spelling
        return between.join(map(str, self))


def node(kind: str, *children: Any, **methods: Any) -> Any:
    """An object of the JVM: its class, and what its methods give."""
    own = SimpleNamespace(getName=lambda: f"org.apache.spark.{kind}", getSuperclass=lambda: None)
    values = {name: (lambda value=value: value) for name, value in methods.items()}
    return SimpleNamespace(getClass=lambda: own, children=lambda: Sequence(children), **values)


def kind_of(text: str) -> Any:
    return SimpleNamespace(simpleString=lambda: text)


def column(name: str, kind: str = "bigint", *, padded: bool = False) -> Any:
    metadata = SimpleNamespace(contains=lambda key: padded and key == "__CHAR_VARCHAR_TYPE_STRING")
    return node("AttributeReference", name=name, dataType=kind_of(kind), metadata=metadata)


def literal(value: Any, kind: str = "bigint") -> Any:
    return node("Literal", value=value, dataType=kind_of(kind))


def pair(kind: str, left: Any, right: Any) -> Any:
    return node(kind, left=left, right=right)


def listed(name: str, *values: int) -> Any:
    return node("In", value=column(name), list=Sequence(map(literal, values)))


def among(name: str, kind: str, *values: Any) -> Any:
    return node("InSet", child=column(name, kind), hset=Sequence(values))


def table(label: str = "3", index: str = "TahoeBatchFileIndex") -> Any:
    files = node("HadoopFsRelation", location=node(index, actionType=label))
    return node("LogicalRelation", relation=files)


def asked(condition: Any) -> list[Sought]:
    found = pushed_conditions(node("Project", node("Filter", table(), condition=condition)))
    assert set(found) == {"3"}
    return found["3"]


def test_lists_of_values():
    """Few and many values, one value, and NULL beside them; ascending."""
    assert asked(listed("k", 5, -1)) == [Sought("k", (-1, 5))]
    assert asked(among("k", "date", 30, 4, "null")) == [Sought("k", (4, 30))]
    assert asked(among("k", "string", "b", "a")) == [Sought("k", ("a", "b"))]
    assert asked(pair("EqualTo", column("k"), literal(7))) == [Sought("k", (7,))]
    either = pair("Or", node("IsNull", child=column("k")), listed("k", 5))
    assert asked(either) == [Sought("k", (5,), null=True)]
    assert asked(node("IsNull", child=column("k"))) == [Sought("k", (), null=True)]


def test_ranges():
    """Both ends make one; a single end is none."""
    low, high = pair("GreaterThanOrEqual", column("k"), literal(2)), pair("LessThan", column("k"), literal(9))
    assert asked(pair("And", low, high)) == [Sought("k", (2, 9), between=True)]
    assert asked(pair("Or", pair("And", low, high), node("IsNull", child=column("k")))) == [
        Sought("k", (2, 9), null=True, between=True)
    ]
    assert asked(low) == []


def test_what_says_nothing_of_bounds():
    """Other types, texts of a fixed length, values that are computed, either of two columns: all rows are asked for."""
    assert asked(among("k", "double", 1.0)) == []
    assert asked(node("InSet", child=column("k", "string", padded=True), hset=Sequence("a"))) == []
    assert asked(among("k", "string", "a\0b", "c")) == []
    assert asked(pair("EqualTo", node("Upper"), literal(1))) == []
    assert asked(pair("Or", listed("k", 1), listed("j", 2))) == []
    assert asked(pair("Or", node("IsNull", child=column("j")), listed("k", 1))) == []
    assert asked(node("Not", node("IsNull", child=column("k")))) == []
    both = pair("And", listed("k", 1), pair("Or", listed("k", 1), listed("j", 2)))
    assert asked(both) == [Sought("k", (1,))]


def test_a_table_that_is_read_twice_has_no_condition():
    """The optimizer reads the rows around a correlated subquery a second time: what one read is asked for says nothing of the other."""
    one, other = (
        node("Filter", table(label), condition=pair("EqualTo", column("k"), literal(1))) for label in "34"
    )
    again = node("Filter", table("3"), condition=pair("EqualTo", column("k"), literal(2)))
    for second in (again, table("3")):
        assert pushed_conditions(node("Join", one, node("Join", other, second))) == {"4": [Sought("k", (1,))]}


def test_files_that_are_no_delta_table():
    """They have no label, and stay as they are."""
    files = node("Filter", table(index="InMemoryFileIndex"), condition=listed("k", 1))
    other = node("Filter", node("LogicalRelation", relation=node("JDBCRelation")), condition=listed("k", 1))
    assert pushed_conditions(node("Join", files, other)) == {}
