"""The only place that takes plans apart and puts them together by Catalyst's own classes.

Another version of Spark may have other ones: whatever fails here, the view is recomputed whole.

Decision 0162.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from pyspark.sql import DataFrame, SparkSession

from headwater.storage.place import Place, is_url, place_of
from headwater_spark.java_classes import OPTION, PYTHON_UTILS, java_class
from headwater_spark.plans.plan_walk import (
    class_name,
    descends_from,
    expression_nodes,
    items,
    plan_leaves,
    plan_nodes,
)
from headwater_spark.views.inexact_columns import with_collations
from headwater_spark.views.lossy_sums import TRY_SUM, with_lossy_sums
from headwater_spark.views.plan_description import Node, read_plan
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

_CATALYST = "org.apache.spark.sql.catalyst"
_LOGICAL = f"{_CATALYST}.plans.logical"
# The first brings joins into an order in which each has a condition, the second hands down what is of one side alone.
_JOINING = ("ReorderJoin", "PushPredicateThroughJoin")
# What subqueries compare with the query around them, and what makes joins of them.
_PULLING_UP = ("PullupCorrelatedPredicates",)
_WITHOUT_SUBQUERIES = (
    "RewriteCorrelatedScalarSubquery",
    "RewritePredicateSubquery",
    "PushPredicateThroughJoin",
)
_PRUNING = ("ColumnPruning",)
# How plans print what fills up a CHAR to its length.
_PADDED = "readSidePadding"
# The operator of ROLLUP and the like: most plans have none, and each operator's class is three calls.
_EXPAND = "Expand"
_MOST_NESTED = 4
# How plans print subqueries, and joins that changed rows can't be followed through.
_SUBQUERIES = ("scalar-subquery#", "exists#", "list#")
# The last two have no condition: Spark asks such a subquery for one row instead.
_NOT_FOLLOWED = ("ExistenceJoin", "DomainJoin", "LeftSingle", "Join LeftSemi\n", "Join LeftAnti\n")
_PARTITIONS = "spark.sql.shuffle.partitions"
# In the names of types, functions and fields' metadata that have to do with it.
_COLLATION = "collat"
_PYTHON = {"PythonUDF", "PythonUDAF", "PythonUDTF", "UnresolvedPolymorphicPythonUDTF"}
# Gives the rows of a leaf, by its number: a frame with columns named as the leaf's; those that are not used may be left out.
RowsOf = Callable[[int, Rows], DataFrame]


class DeltaLeaf:
    """A Delta table in a plan: the relation that reads it. Each of these is asked of the JVM once: none ever changes."""

    def __init__(self, relation: Any, location: Any) -> None:
        self._location = location
        self.relation = relation

    @cached_property
    def folder(self) -> Place:
        """The table's folder."""
        uri = str(self._location.path().toString())
        return place_of(unquote(uri)) if is_url(uri) else Path(unquote(urlparse(uri).path))

    @cached_property
    def pinned(self) -> bool:
        """Whether it reads one version, whatever is committed meanwhile."""
        return bool(self._location.isTimeTravelQuery())

    @cached_property
    def version(self) -> int:
        """The version that it reads, or read when it was analysed."""
        return int(self.snapshot.version())

    @cached_property
    def table_id(self) -> str:
        """The id that Delta gave the table."""
        return str(self.snapshot.metadata().id())

    @cached_property
    def snapshot(self) -> Any:
        """Delta's own description of the version."""
        return self._location.snapshotAtAnalysis()

    @cached_property
    def clustering(self) -> list[str]:
        """The columns that the table is partitioned by."""
        return [str(one) for one in items(self.snapshot.metadata().partitionColumns())]


def delta_leaf(relation: Any) -> DeltaLeaf | None:
    """A leaf of a plan, if it is a Delta table."""
    if class_name(relation).rpartition(".")[2] != "LogicalRelation":
        return None
    files = relation.relation()
    if not descends_from(files, "HadoopFsRelation"):
        return None
    location = files.location()
    return DeltaLeaf(relation, location) if "TahoeLogFileIndex" in class_name(location) else None


class ViewPlan:
    """The analysed plan of a view's query, and plans that are made from it."""

    def __init__(self, frame: DataFrame) -> None:
        self.frame = frame
        self.session: SparkSession = frame.sparkSession
        jvm: Any = self.session._jvm  # noqa: SLF001 - plans have no public face in Python
        self._jvm = jvm
        analysed = frame._jdf.queryExecution().analyzed()  # noqa: SLF001
        # What a WITH clause names is put where it is read, so that each read is a leaf of its own.
        inlined = self._class(f"{_CATALYST}.optimizer.InlineCTE")(True, False).apply(analysed)
        self._plan = self._of_used_columns(self._in_joins(inlined))
        text = str(self._plan.toJSON())
        self._nodes = list(_in_order(self._plan))
        self._outputs: dict[int, list[tuple[str, Any]]] = {}
        root = read_plan(text, self._projections() if _EXPAND in text else None)
        collated = self._collated(root)
        root = with_collations(root, collated) if collated else root
        self.root: Node = with_lossy_sums(root) if self._has_lossy_sums() else root
        self._has_python = "PythonUD" in text
        self._attributes: dict[int, Any] = {}

    @cached_property
    def text(self) -> str:
        """The plan as Spark prints it, with nothing left out."""
        return _printed(self._plan)

    @property
    def all_leaves(self) -> list[Any]:
        """The leaves, those of subqueries included."""
        return list(plan_leaves(self._plan))

    def leaf(self, number: int) -> Any:
        """The leaf with a number."""
        return self._nodes[number]

    def python_functions(self) -> Iterator[bytes]:
        """The pickled Python functions of the plan, in its order."""
        for node in plan_nodes(self._plan) if self._has_python else ():
            for expression in items(node.expressions().toSeq()):
                for part in expression_nodes(expression):
                    if class_name(part).rpartition(".")[2] in _PYTHON:
                        numbers = str(part.func().command().mkString(","))
                        yield bytes(int(number) & 0xFF for number in numbers.split(",") if number)

    def undetermined(self) -> set[str]:
        """The classes of expressions that Spark calls not deterministic, without those that only have such parts."""
        if self._plan.deterministic():
            return set()
        classes = set()
        for node in plan_nodes(self._plan):
            for expression in items(node.expressions().toSeq()):
                for part in expression_nodes(expression):
                    if not part.deterministic() and all(
                        child.deterministic() for child in items(part.children())
                    ):
                        classes.add(class_name(part).rpartition(".")[2])
        return classes or {"an expression"}

    @cached_property
    def working(self) -> SparkSession:
        """A session of its own for what a refresh runs: what is a stage of one job there is a job of its own with AQE."""
        java = self.session._jsparkSession.cloneSession()  # noqa: SLF001 - no public way to clone
        session = SparkSession(self.session.sparkContext, java)
        cores = self.session.sparkContext.defaultParallelism
        partitions = min(cores, int(str(session.conf.get(_PARTITIONS))))
        # Small parts of a view are read and written: nothing is gained by adapting plans while they run.
        session.conf.set("spark.sql.adaptive.enabled", "false")
        session.conf.set(_PARTITIONS, str(partitions))
        return session

    def adapt(self) -> None:
        """Have plans adapt while they run, as the query's own session has it: for so many rows that it pays."""
        for key in ("spark.sql.adaptive.enabled", _PARTITIONS):
            self.working.conf.set(key, str(self.session.conf.get(key)))

    def frame_of(self, recipe: Recipe, ids: Sequence[int], rows_of: RowsOf) -> DataFrame:
        """The rows of a recipe, with the columns that have these ids; their names are those in the plan."""
        return _frame(self.working, self._chosen(self._built(recipe, rows_of), ids, ids))

    def _projections(self) -> dict[int, list[str]]:
        return {
            number: [str(one.toJSON()) for row in items(node.projections()) for one in items(row)]
            for number, node in enumerate(self._nodes)
            if class_name(node).endswith(f".{_EXPAND}")
        }

    def _collated(self, root: Node) -> set[int]:
        """The columns whose texts have a collation."""
        schemas = (str(self._nodes[leaf.number].schema().json()) for leaf in root.leaves)
        if _COLLATION not in self.text.lower() and not any(
            _COLLATION in schema.lower() for schema in schemas
        ):
            return set()
        return {
            int(column.exprId().id())
            for node in self._nodes
            for column in items(node.output())
            if _COLLATION in str(column.dataType().simpleString()).lower()
        }

    def _has_lossy_sums(self) -> bool:
        """Whether a sum of the plan may be NULL since it was too large."""
        ansi = str(self.session.conf.get("spark.sql.ansi.enabled")).lower() == "true"
        return not ansi or TRY_SUM in self.text

    def _in_joins(self, plan: Any) -> Any:
        """A plan whose joins have the conditions of a WHERE clause above them, and with joins for subqueries, where there can be.

        Changed rows find their partners by the conditions of joins. The rules are those by which Spark plans the query itself.
        """
        joined, text = self._ruled(plan, _JOINING), _printed(plan)
        if "LateralJoin" in text:
            return joined
        made, before = plan, ""
        # What was inside of a subquery is a part of the plan then, with subqueries of its own.
        for _ in range(_MOST_NESTED):
            if text == before or not any(word in text for word in _SUBQUERIES):
                break
            made, before = self._ruled(made, (*_PULLING_UP, *_JOINING, *_WITHOUT_SUBQUERIES)), text
            text = _printed(made)
        if made is plan or any(word in text for word in _NOT_FOLLOWED):
            return joined
        return made

    def _of_used_columns(self, plan: Any) -> Any:
        """A plan that makes no columns that nobody reads: for ROLLUP and the like, and for columns of type CHAR, Spark makes all the table has."""
        printed = _printed(plan)
        names_all = _PADDED in printed or (
            _EXPAND in printed and any(class_name(node).endswith(f".{_EXPAND}") for node in _in_order(plan))
        )
        return self._ruled(plan, _PRUNING) if names_all else plan

    def _ruled(self, plan: Any, rules: Sequence[str]) -> Any:
        for rule in rules:
            plan = self._module(f"{_CATALYST}.optimizer.{rule}").apply(plan)
        return plan

    # -- building ------------------------------------------------------------------------------------------------

    def _built(self, recipe: Recipe, rows_of: RowsOf) -> Any:  # noqa: PLR0911 - one return a kind of recipe
        match recipe:
            case Leaf(number, rows):
                return self._leaf_plan(number, rows_of(number, rows))
            case Whole(number):
                return self._nodes[number]
            case Over(number, children):
                return self._nodes[number].withNewChildren(
                    self._seq([self._built(child, rows_of) for child in children])
                )
            case Columns(number, places, child):
                node = self._nodes[number]
                is_project = class_name(node).endswith(".Project")
                outputs = items(node.projectList() if is_project else node.aggregateExpressions())
                return self._project([outputs[place] for place in places], self._built(child, rows_of))
            case Renamed(_, old, new, child):
                return self._chosen(self._built(child, rows_of), old, new)
            case Padded(ids, nulls, child):
                return self._padded(ids, nulls, self._built(child, rows_of))
            case Together(parts):
                union = self._class(f"{_LOGICAL}.Union")
                return union(self._seq([self._built(part, rows_of) for part in parts]), False, False)
            case Joined():
                return self._joined(recipe, rows_of)

    def _joined(self, recipe: Joined, rows_of: RowsOf) -> Any:
        condition = self._nodes[recipe.number].condition()
        parts = list(_conjuncts(condition.get())) if condition.isDefined() else []
        chosen = [parts[place] for place in recipe.parts]
        together = chosen[0] if chosen else None
        for part in chosen[1:]:
            together = self._class(f"{_CATALYST}.expressions.And")(together, part)
        return self._class(f"{_LOGICAL}.Join")(
            self._built(recipe.left, rows_of),
            self._built(recipe.right, rows_of),
            self._module(f"{_CATALYST}.plans.{recipe.how}"),
            self._option(together),
            self._module(f"{_LOGICAL}.JoinHint").NONE(),
        )

    def _leaf_plan(self, number: int, frame: DataFrame) -> Any:
        """The frame's plan, with the ids that the leaf's columns have in the query."""
        plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001
        named = {str(attribute.name()): attribute for attribute in items(plan.output())}
        columns = [self._alias(named[name], own, name) for name, own in self._output(number) if name in named]
        return self._project(columns, plan)

    def _chosen(self, plan: Any, old: Sequence[int], new: Sequence[int]) -> Any:
        """A plan's columns with the ids ``old``, under the ids ``new`` of this view's plan."""
        there = {int(attribute.exprId().id()): attribute for attribute in items(plan.output())}
        chosen = []
        for before, after in zip(old, new, strict=True):
            attribute = there[before]
            chosen.append(attribute if before == after else self._alias(attribute, self._attribute(after)))
        return self._project(chosen, plan)

    def _padded(self, ids: Sequence[int], nulls: Collection[int], plan: Any) -> Any:
        there = {int(attribute.exprId().id()): attribute for attribute in items(plan.output())}
        literal = self._class(f"{_CATALYST}.expressions.Literal")
        columns = []
        for number in ids:
            named = self._attribute(number)
            columns.append(
                self._alias(literal(None, named.dataType()), named) if number in nulls else there[number]
            )
        return self._project(columns, plan)

    def _output(self, number: int) -> list[tuple[str, Any]]:
        """The columns of an operator, by its number, with their names."""
        if number not in self._outputs:
            columns = items(self._nodes[number].output())
            self._outputs[number] = [(str(column.name()), column) for column in columns]
        return self._outputs[number]

    def _attribute(self, number: int) -> Any:
        if not self._attributes:
            for node in self._nodes:
                for attribute in items(node.output()):
                    self._attributes.setdefault(int(attribute.exprId().id()), attribute)
        return self._attributes[number]

    def _alias(self, value: Any, named: Any, name: str | None = None) -> Any:
        """The value, under the name and id of another column; ``name``: where it is known."""
        alias = self._class(f"{_CATALYST}.expressions.Alias")
        nothing, none = self._empty
        return alias(value, name or str(named.name()), named.exprId(), nothing, none, nothing)

    @cached_property
    def _empty(self) -> tuple[Any, Any]:
        """A sequence and an option without anything in them."""
        return self._seq([]), self._option(None)

    def _project(self, columns: list[Any], plan: Any) -> Any:
        return self._class(f"{_LOGICAL}.Project")(self._seq(columns), plan)

    def _class(self, name: str) -> Any:
        return java_class(self._jvm, name)

    def _module(self, name: str) -> Any:
        return getattr(java_class(self._jvm, f"{name}$"), "MODULE$")

    def _option(self, value: Any) -> Any:
        option = java_class(self._jvm, OPTION)
        return option.empty() if value is None else option.apply(value)

    def _seq(self, values: list[Any]) -> Any:
        return java_class(self._jvm, PYTHON_UTILS).toSeq(values)


def _printed(plan: Any) -> str:
    return str(plan.treeString(True, False, 1 << 30, False, False))


def in_session(frame: DataFrame, session: SparkSession) -> DataFrame:
    """The same rows, planned and run with the settings of a session; Delta's own frames take those of the thread's active one."""
    return _frame(session, frame._jdf.queryExecution().analyzed())  # noqa: SLF001


def _frame(session: SparkSession, plan: Any) -> DataFrame:
    datasets = java_class(session._jvm, "org.apache.spark.sql.classic.Dataset")  # noqa: SLF001
    return DataFrame(datasets.ofRows(session._jsparkSession, plan), session)  # noqa: SLF001


def _in_order(plan: Any) -> Iterator[Any]:
    yield plan
    for child in items(plan.children()):
        yield from _in_order(child)


def _conjuncts(condition: Any) -> Iterator[Any]:
    if class_name(condition).endswith(".And"):
        yield from _conjuncts(condition.left())
        yield from _conjuncts(condition.right())
    else:
        yield condition
