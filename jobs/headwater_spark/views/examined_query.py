"""A view's query as one refresh reads it: its plan, its fingerprint, and which versions of which tables it reads.

Decisions 0162, 0163.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from headwater.delta_log.versions import TableHead
from headwater.incremental.refresh_record import SourceState
from headwater.storage.place import Place
from headwater_spark.plans.plan_walk import class_name, descends_from, items, pair_of
from headwater_spark.views.fingerprint import has_bytes, plan_fingerprint
from headwater_spark.views.plan_surgery import DeltaLeaf, ViewPlan, delta_leaf
from headwater_spark.views.python_functions import NotDigestible, pickled_digest
from headwater_spark.views.used_columns import used_columns

_CONSTANT = {"LocalRelation", "Range", "OneRowRelation"}


@dataclass(frozen=True)
class NotedTable:
    """A source that is a Delta table, as it stood before anything was read.

    ``key``: its name in records; ``written``: when the version was made, see ``SourceState``.
    """

    key: str
    folder: Place
    head: TableHead
    written: int | None = None


@dataclass(frozen=True)
class ExaminedQuery:
    """What was found.

    Args:
        plan: the query's plan.
        fingerprint: of what decides about the rows, besides sources and settings.
        sources: each Delta table by its key, where every read of it is of the version that was noted; else None.
        tables: the leaves that are Delta tables, by their number in the plan, with their keys.
        in_subqueries: the keys of tables that subqueries in expressions read.
        columns: for each leaf, the names of the columns that the result depends on.
        only_tables: whether nothing else is read but what the query itself says.
        leaves: one read of each table, by its key.
        noted: the tables that are read, as they stood before.
    """

    plan: ViewPlan
    fingerprint: str
    sources: Mapping[str, SourceState] | None
    tables: Mapping[int, tuple[str, DeltaLeaf]]
    in_subqueries: frozenset[str]
    columns: Mapping[int, tuple[str, ...]]
    only_tables: bool
    leaves: Mapping[str, DeltaLeaf]
    noted: Mapping[str, NotedTable]

    def columns_of(self, key: str) -> frozenset[str]:
        """The columns of a table that the result depends on; of one that a subquery reads, all."""
        if key in self.in_subqueries:
            return frozenset(str(name) for name in self.leaves[key].snapshot.schema().names())
        return frozenset(
            name for number, (own, _) in self.tables.items() if own == key for name in self.columns[number]
        )


def examine(
    frame: DataFrame, noted: Sequence[NotedTable], more: Iterable[str], source_hash: str
) -> ExaminedQuery:
    """Look into a view's query.

    Args:
        frame: the query over the versions that were noted.
        noted: the sources that are tables.
        more: what decides about the rows besides the query.
        source_hash: of the pipeline's sources; it stands for what can't be looked into.
    """
    plan = ViewPlan(frame)
    by_folder = {table.folder: table for table in noted}
    used = used_columns(plan.root)
    tables: dict[int, tuple[str, DeltaLeaf]] = {}
    columns: dict[int, tuple[str, ...]] = {}
    every = [(relation, delta_leaf(relation)) for relation in plan.all_leaves]
    # Leaves of subqueries come after those of the query itself.
    for node, (_, leaf) in zip(plan.root.leaves, every, strict=False):
        names = {one.id: one.name for one in node.exprs("output")}
        columns[node.number] = tuple(names[number] for number in node.output if number in used[node.number])
        if leaf is not None:
            tables[node.number] = (_key(leaf, by_folder), leaf)
    delta = [leaf for _, leaf in every if leaf is not None]
    texts, looked_into = _leaf_texts(every, by_folder)
    functions, digested = _functions(plan)
    behind = [] if looked_into and digested else [source_hash]
    shape = [f"{field.name} {field.dataType.json()}" for field in frame.schema.fields]
    used_names = [" ".join(columns[node.number]) for node in plan.root.leaves]
    return ExaminedQuery(
        plan,
        plan_fingerprint(plan.root, plan.text, [*texts, *used_names], [*functions, *shape, *more, *behind]),
        _states(delta, by_folder),
        tables,
        _behind_subqueries([_key(leaf, by_folder) for leaf in delta], [key for key, _ in tables.values()]),
        columns,
        looked_into,
        {_key(leaf, by_folder): leaf for leaf in delta},
        {table.key: table for table in noted if any(leaf.folder == table.folder for leaf in delta)},
    )


def _key(leaf: DeltaLeaf, by_folder: Mapping[Place, NotedTable]) -> str:
    known = by_folder.get(leaf.folder)
    return known.key if known else str(leaf.folder)


def _behind_subqueries(every: Sequence[str], outside: Sequence[str]) -> frozenset[str]:
    """The tables that are read more often than outside of subqueries."""
    return frozenset(key for key in every if every.count(key) > outside.count(key))


def _states(
    leaves: Sequence[DeltaLeaf], by_folder: Mapping[Place, NotedTable]
) -> dict[str, SourceState] | None:
    states = {}
    for leaf in leaves:
        noted = by_folder.get(leaf.folder)
        if noted is None or not leaf.pinned:
            return None
        if (leaf.table_id, leaf.version) != (noted.head.table_id, noted.head.version):
            return None
        states[noted.key] = SourceState(noted.head.table_id, noted.head.version, noted.written)
    return states


def _leaf_texts(
    every: Sequence[tuple[Any, DeltaLeaf | None]], by_folder: Mapping[Place, NotedTable]
) -> tuple[list[str], bool]:
    """What each leaf reads, and whether that says all."""
    texts, complete = [], True
    for relation, leaf in every:
        if leaf is not None:
            texts.append(f"table {_key(leaf, by_folder)}")
            continue
        kind = class_name(relation).rpartition(".")[2]
        if kind == "LogicalRelation" and descends_from(relation.relation(), "HadoopFsRelation"):
            files = relation.relation()
            paths = [str(path.toString()) for path in items(files.location().rootPaths())]
            options = sorted(pair_of(pair) for pair in items(files.options().toSeq()))
            texts.append(
                f"files {class_name(files.fileFormat())} {paths} {options} {relation.schema().json()}"
            )
        elif kind == "LocalRelation":
            rows = str(relation.data().mkString(" "))
            texts.append("rows " + (str(relation.toSQL("rows")) if has_bytes(rows) else rows))
        elif kind in _CONSTANT:
            texts.append(str(relation.toString()).partition("#")[0] if kind != "Range" else _range(relation))
        else:
            texts.append(kind)
            complete = False
    return texts, complete


def _range(relation: Any) -> str:
    return f"range {relation.start()} {relation.end()} {relation.step()}"


def _functions(plan: ViewPlan) -> tuple[list[str], bool]:
    try:
        return [pickled_digest(pickled) for pickled in plan.python_functions()], True
    except NotDigestible:
        return [], False
