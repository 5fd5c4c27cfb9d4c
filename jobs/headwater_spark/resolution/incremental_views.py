"""What each materialized view of a pipeline allows, as the manifest and ``headwater explain`` show it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import StructType

from headwater.definitions.dataset import Dataset, DatasetKind
from headwater.definitions.flow import Flow
from headwater.graph.manifest import DatasetEntry, IncrementalEntry, Manifest, SourceTechniques
from headwater.incremental.costs import Limits, limits_from
from headwater.incremental.source_changes import ChangeKind
from headwater.incremental.techniques import Issue, Technique
from headwater.storage.place import Place
from headwater_spark.plans.plan_walk import simple_name
from headwater_spark.resolution.graph_resolution import ResolvedPipeline
from headwater_spark.resolution.view_eligibility import Eligibility, file_paths, view_eligibility
from headwater_spark.views.affected_part import by_affected_part
from headwater_spark.views.eligibility import LeafTechniques
from headwater_spark.views.key_columns import KeyColumns
from headwater_spark.views.plan_description import Node
from headwater_spark.views.plan_surgery import ViewPlan
from headwater_spark.views.used_columns import used_columns

# What stands in place of a technique where there is none.
RECOMPUTED = "recomputed"


def with_incremental_views(pipeline: ResolvedPipeline) -> Manifest:
    """The manifest with what each view allows: for who validates it. An update looks at the views that it refreshes."""

    def entry(one: DatasetEntry) -> DatasetEntry:
        if one.kind is not DatasetKind.MATERIALIZED_VIEW:
            return one
        known = incremental_entry(pipeline, pipeline.dataset(one.name))
        return one.model_copy(update={"incremental": known})

    manifest = pipeline.manifest
    return manifest.model_copy(update={"datasets": tuple(map(entry, manifest.datasets))})


def incremental_entry(
    pipeline: ResolvedPipeline, dataset: Dataset, known: Eligibility | None = None
) -> IncrementalEntry:
    """What one view allows. ``known``: what was seen of its query before."""
    frame = pipeline.evaluation.frames[dataset.name]
    known = known or eligibility_of(pipeline, dataset)
    limits = view_limits(pipeline, dataset)
    return IncrementalEntry(
        policy=str(dataset.refresh_policy),
        eligible=not known.issues,
        issues=tuple(issue.as_dict() for issue in known.issues),
        sources=tuple(
            table_techniques(known.plan.root, table, frame.schema, limits)
            for table in followed_tables(pipeline, known)
            if known.plan is not None
        ),
    )


def eligibility_of(pipeline: ResolvedPipeline, dataset: Dataset) -> Eligibility:
    """What a view's query and rules allow under the settings that the query has in an update: sums may overflow in some."""
    evaluation, flow = pipeline.evaluation, view_flow(pipeline, dataset)
    with evaluation.settings(flow) if flow is not None else nullcontext():
        return view_eligibility(dataset, evaluation.frames[dataset.name], evaluation.stubs)


def view_flow(pipeline: ResolvedPipeline, dataset: Dataset) -> Flow | None:
    """The flow of a view's query."""
    return next((one for one in pipeline.registry.flows() if one.target == dataset.name), None)


def view_limits(pipeline: ResolvedPipeline, dataset: Dataset) -> Limits:
    """The limits that the pipeline and a view set."""
    flow = view_flow(pipeline, dataset)
    return limits_from({**pipeline.project.configuration, **(flow.spark_conf if flow is not None else {})})


@dataclass(frozen=True)
class FollowedTable:
    """A table that a query reads, by its name, with each read of it: what changes of it changes for all of them."""

    name: str
    reads: tuple[LeafTechniques, ...]
    is_table: bool = True


def followed_tables(pipeline: ResolvedPipeline, known: Eligibility) -> list[FollowedTable]:
    """The tables of a query, in the order of their first reads."""
    if known.plan is None:
        return []
    reads: dict[tuple[str, bool], list[LeafTechniques]] = {}
    for one in known.leaves:
        relation = known.plan.leaf(one.leaf)
        is_table = file_paths(relation) is not None  # it may be a change feed that is read as a table
        name = _source(pipeline, relation) if is_table else simple_name(relation.relation())
        reads.setdefault((name, is_table), []).append(one)
    return [FollowedTable(name, tuple(ones), is_table) for (name, is_table), ones in reads.items()]


def technique_for(
    dataset: Dataset,
    root: Node,
    tables: Sequence[FollowedTable],
    schema: StructType,
    changes: Mapping[str, ChangeKind],
    limits: Limits,
    *,
    separable: bool = True,
) -> Technique | Issue | None:
    """How a refresh would follow what changed in some tables, by their names; None where it follows none of them.

    Args:
        root: of the query's plan; ``schema``: of its result.
        separable: whether the view's table has the keys of its groups as the query has them.
    """
    reads = [(read, changes[one.name]) for one in tables if one.name in changes for read in one.reads]
    if not reads:
        return None
    (read, change), alone = reads[0], len(reads) == 1
    # Whole groups have to be judged by rules, not what is added to them.
    merged = separable and not dataset.expectations
    direct = {Technique.APPEND_ONLY, *([Technique.GROUP_AGGREGATE] if merged else ())}
    if alone and change is ChangeKind.APPENDED and read.grown in direct:
        return read.grown
    return by_affected_part(_keys(root, schema, [one for one, _ in reads]), limits)


def as_written(
    technique: str, partitions: Collection[str], sources: Sequence[SourceTechniques], changed: Collection[str]
) -> str:
    """What an event calls a technique: an affected part that is named by the view's partitions is whole ones of them.

    Args:
        changed: the names of the sources that changed.
    """
    own = {name.lower() for name in partitions}
    named = [own & {name.lower() for name in one.found_by} for one in sources if one.source in changed]
    if not named or Technique(technique).direct or not set.intersection(*named):
        return technique
    return str(Technique.PARTITION_OVERWRITE)


def _keys(root: Node, schema: StructType, reads: Sequence[LeafTechniques]) -> KeyColumns:
    types = [one.dataType.simpleString() for one in schema.fields]
    return KeyColumns(root, [one.leaf for one in reads], types, schema.names)


def read_columns(pipeline: ResolvedPipeline, plan: ViewPlan | None) -> dict[str, frozenset[str] | None]:
    """For each table that a view reads the columns that its result depends on; None where a subquery in an expression reads it."""
    if plan is None:
        return {}
    used, columns, outside = used_columns(plan.root), dict[str, set[str]](), list[str]()
    for node in plan.root.leaves:
        if file_paths(plan.leaf(node.number)) is not None:
            outside.append(_source(pipeline, plan.leaf(node.number)))
            names = {one.name for one in node.exprs("output") if one.id in used[node.number]}
            columns.setdefault(outside[-1], set()).update(names)
    every = [_source(pipeline, leaf) for leaf in plan.all_leaves if file_paths(leaf) is not None]
    return {one: None if every.count(one) > outside.count(one) else frozenset(columns[one]) for one in every}


def table_techniques(
    root: Node, table: FollowedTable, schema: StructType, limits: Limits
) -> SourceTechniques:
    """How each change of a table is followed; one that is read several times changes in all its reads."""
    if not table.is_table:
        return SourceTechniques(source=table.name, rows_added=RECOMPUTED, rows_changed=RECOMPUTED)
    grown, changed, places = table.reads[0].grown, table.reads[0].changed, table.reads[0].columns
    if len(table.reads) > 1:
        keys = _keys(root, schema, table.reads)
        together = by_affected_part(keys, limits)
        grown = changed = None if isinstance(together, Issue) else together
        places = () if isinstance(together, Issue) else tuple(keys.possible())
    return SourceTechniques(
        source=table.name,
        rows_added=str(grown or RECOMPUTED),
        rows_changed=str(changed or RECOMPUTED),
        found_by=tuple(schema.names[place] for place in places),
        reads=len(table.reads),
    )


def _source(pipeline: ResolvedPipeline, relation: Any) -> str:
    paths = file_paths(relation) or []
    # Tables of the pipeline are read by stand-ins, in folders of their names.
    stubs, warehouse = str(pipeline.evaluation.stubs), pipeline.project.warehouse
    return ", ".join(
        path.rpartition("/")[2] if stubs in path else named_in(warehouse, path.removeprefix("file:"))
        for path in paths
    )


def named_in(warehouse: Place, folder: str) -> str:
    """What a table is called by its folder: as events call it, and on each machine alike, where it is in the warehouse."""
    return folder.removeprefix(f"{warehouse}/")
