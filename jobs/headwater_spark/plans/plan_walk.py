"""Access to Spark's query plans through the gateway."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from py4j.java_gateway import JavaClass, JavaObject
from pyspark import SparkContext
from pyspark.sql import DataFrame

from headwater.errors import InvalidSourceOption
from headwater_spark.java_classes import CLASS_UTILS, java_class

_UNRESOLVED = "org.apache.spark.sql.catalyst.analysis.UnresolvedRelation"
# Expressions that Spark calls deterministic although they depend on the time of the run.
CURRENT_TIME = {
    "CurrentDate",
    "CurrentTimestamp",
    "CurrentTimestampLike",
    "Now",
    "LocalTimestamp",
    "CurrentTime",
}
# A part of the text of each of them.
_CLOCK_WORDS = ("current", "now", "localtime", "today", "tomorrow", "yesterday")
# Texts that Spark's optimizer makes a date or a time of when the query runs.
TEXT_TO_TIME = frozenset({"Cast", "ParseToDate", "ParseToTimestamp"})
_SPECIAL_TIMES = frozenset({"now", "today", "tomorrow", "yesterday"})


def items(sequence: Any) -> list[Any]:
    """A Scala sequence as a list."""
    return [sequence.apply(index) for index in range(sequence.length())]


def pair_of(pair: Any) -> tuple[str, str]:
    """A Scala pair as two texts."""
    return str(pair._1()), str(pair._2())  # noqa: SLF001 - the names of a Scala pair's parts


def class_name(node: Any) -> str:
    """The class of a JVM object: by one call, where the class itself would be a second one, and an object to give back."""
    if isinstance(node, JavaObject) and SparkContext._jvm is not None:  # noqa: SLF001 - plan nodes say of no session
        utils = java_class(SparkContext._jvm, CLASS_UTILS)  # noqa: SLF001 - as above
        if isinstance(utils, JavaClass):
            return str(utils.getName(node))
    return str(node.getClass().getName())


def simple_name(node: Any) -> str:
    """The class of a JVM object, without its package."""
    return class_name(node).rpartition(".")[2]


def descends_from(node: Any, name: str) -> bool:
    """Whether a JVM object's class, or one that it extends, has this simple name."""
    if simple_name(node) == name:
        return True
    above = node.getClass().getSuperclass()
    while above is not None:
        if str(above.getName()).rpartition(".")[2] == name:
            return True
        above = above.getSuperclass()
    return False


def plan_nodes(plan: Any) -> Iterator[Any]:
    """Every operator of a plan: below it, in its CTEs, and in the subqueries of its expressions.

    Spark finds the subqueries: to look at each expression from here takes a dozen calls.
    """
    yield plan
    for child in items(plan.children()):
        yield from plan_nodes(child)
    for inner in items(plan.innerChildren()):
        if ".catalyst.plans.logical." in class_name(inner) or ".catalyst.analysis." in class_name(inner):
            yield from plan_nodes(inner)
    for subquery in items(plan.subqueries()):
        yield from plan_nodes(subquery)


def plan_leaves(plan: Any) -> Iterator[Any]:
    """The leaves of an analysed plan and of the subqueries in its expressions, in the order of the query."""
    yield from items(plan.collectLeaves())
    for subquery in items(plan.subqueriesAll()):
        yield from items(subquery.collectLeaves())


def expression_nodes(expression: Any) -> Iterator[Any]:
    """An expression and all its parts."""
    yield expression
    for child in items(expression.children()):
        yield from expression_nodes(child)


@dataclass(frozen=True)
class TableReference:
    """A table's name in a SQL text: its parts, its position (first and last character), how it is read.

    ``aliased``: whether the text gives it another name to refer to its columns by. ``options``: those of WITH (...).
    ``written``: the parts as the text has them, where ``parts`` has more. ``clause``: the first and last character of what
    says as of when it is read, which is among the options.
    """

    parts: tuple[str, ...]
    streaming: bool
    start: int
    stop: int
    aliased: bool
    options: tuple[tuple[str, str], ...] = ()
    written: tuple[str, ...] = ()
    clause: tuple[int, int] | None = None


def table_references(
    plan: Any, hidden: frozenset[str] = frozenset(), *, aliased: bool = False
) -> Iterator[TableReference]:
    """The tables that a parsed plan names, without names that a CTE hides (``hidden``)."""
    kind = class_name(plan)
    if kind == _UNRESOLVED:
        yield from _reference(plan, hidden, aliased)
    if kind.endswith(".RelationTimeTravel"):
        yield from _as_of(plan, hidden, aliased)
    if kind.endswith(".UnresolvedWith"):
        # A CTE sees the ones before it; in its own text its name still means the table.
        for relation in items(plan.cteRelations()):
            name = str(relation._1()).lower()  # noqa: SLF001 - the name of a Scala tuple's part
            own = frozenset({name}) if plan.allowRecursion() else frozenset()
            yield from table_references(relation._2(), hidden | own)  # noqa: SLF001
            hidden |= {name}
    # The parser adds another node around a stream's name.
    named = kind.endswith(".SubqueryAlias") or (aliased and kind.endswith(".NamedStreamingRelation"))
    for child in items(plan.children()):
        yield from table_references(child, hidden, aliased=named)
    for subquery in items(plan.subqueries()):
        yield from table_references(subquery, hidden)


def _reference(relation: Any, hidden: frozenset[str], aliased: bool) -> Iterator[TableReference]:
    parts = tuple(str(part) for part in items(relation.multipartIdentifier()))
    start, stop = relation.origin().startIndex(), relation.origin().stopIndex()
    if (len(parts) == 1 and parts[0].lower() in hidden) or not (start.isDefined() and stop.isDefined()):
        return
    yield TableReference(
        parts, bool(relation.isStreaming()), start.get(), stop.get(), aliased, _options(relation.options())
    )


def _options(written: Any) -> tuple[tuple[str, str], ...]:
    # Going through a Java map ends with an error of Java's, which takes PySpark many calls; most relations have no options.
    return () if written.isEmpty() else tuple((str(key), str(value)) for key, value in dict(written).items())


def _as_of(plan: Any, hidden: frozenset[str], aliased: bool) -> Iterator[TableReference]:
    """A table with VERSION AS OF or TIMESTAMP AS OF; nothing where its place is not known."""
    start, stop, version = plan.origin().startIndex(), plan.origin().stopIndex(), plan.version()
    if class_name(plan.relation()) != _UNRESOLVED or not (start.isDefined() and stop.isDefined()):
        return
    if version.isDefined():
        option = ("versionAsOf", str(version.get()))
    else:
        option = ("timestampAsOf", _moment(plan.timestamp().get()))
    for reference in _reference(plan.relation(), hidden, aliased):
        yield replace(reference, options=(*reference.options, option), clause=(start.get(), stop.get()))


def _moment(expression: Any) -> str:
    if simple_name(expression) != "Literal" or expression.value() is None:
        raise InvalidSourceOption(
            f"TIMESTAMP AS OF {expression.sql()}: a table is read as of a moment that the text names.",
            remedy="Write a literal, as TIMESTAMP AS OF '2026-01-31 12:00:00'; ${key} in the text stands for a value of "
            "`configuration` in pipeline.yml.",
        )
    # A text as it is written, a TIMESTAMP or DATE without its word.
    return str(expression.sql()).partition("'")[2].rpartition("'")[0]


def reads_the_clock(plan: Any) -> bool:
    """Whether the result of an analysed plan depends on when it is run, or on chance."""
    # Most plans don't; to look at each expression takes a dozen calls for each of them.
    text = str(plan.treeString(True, False, 1 << 30, False, False)).lower()
    if plan.deterministic() and not any(word in text for word in _CLOCK_WORDS):
        return False
    for node in plan_nodes(plan):
        if any(asks_the_clock(expression) for expression in items(node.expressions().toSeq())):
            return True
    return False


def has_subquery(expression: Any) -> bool:
    """Whether a query stands inside of an expression, parsed or analysed; ``exists`` over an array is none."""
    return any(
        (name := simple_name(part)).endswith("Subquery") or name in ("Exists", "ListQuery")
        for part in expression_nodes(expression)
    )


def asks_the_clock(expression: Any) -> bool:
    """Whether the value of an expression depends on when it is computed, or on chance."""
    return not expression.deterministic() or any(
        simple_name(part) in CURRENT_TIME or _is_special_time(part) for part in expression_nodes(expression)
    )


def _is_special_time(expression: Any) -> bool:
    """Whether a text becomes the time of the run: ``cast('today' as date)``, which ``day < 'today'`` is as well."""
    kind = simple_name(expression)
    if kind not in TEXT_TO_TIME:
        return False
    if kind == "Cast" and not str(expression.dataType().simpleString()).startswith(("date", "timestamp")):
        return False
    literals = [child for child in items(expression.children()) if simple_name(child) == "Literal"]
    return any(is_special_time(child.value()) for child in literals)


def is_special_time(value: object) -> bool:
    """Whether a text that is cast to a date or a time means the time of the run."""
    return str(value).strip().lower() in _SPECIAL_TIMES


def input_files(frame: DataFrame) -> list[str]:
    """The files that a frame reads, as URIs; also while a dataset's function runs, where ``inputFiles`` is guarded."""
    return list(frame._jdf.inputFiles())  # noqa: SLF001 - the Python method is guarded
