"""What each materialized view of a pipeline allows, as the manifest and ``headwater explain`` show it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater.definitions.dataset import Dataset, DatasetKind
from headwater.graph.manifest import DatasetEntry, IncrementalEntry, Manifest, SourceTechniques
from headwater_spark.plans.plan_walk import descends_from, items, simple_name
from headwater_spark.resolution.graph_resolution import ResolvedPipeline
from headwater_spark.resolution.view_eligibility import view_eligibility
from headwater_spark.views.eligibility import LeafTechniques
from headwater_spark.views.used_columns import used_columns

# What stands in place of a technique where there is none.
RECOMPUTED = "recomputed"


def with_incremental_views(pipeline: ResolvedPipeline) -> Manifest:
    """The manifest with what each view allows: for who validates it. An update looks at the views that it refreshes."""

    def entry(one: DatasetEntry) -> DatasetEntry:
        if one.kind is not DatasetKind.MATERIALIZED_VIEW:
            return one
        known = incremental_entry(pipeline, pipeline.dataset(one.name))
        # The file is the same on each machine.
        sources = (
            source.model_copy(update={"source": source.source.replace(warehouse, "")})
            for source in known.sources
        )
        return one.model_copy(update={"incremental": known.model_copy(update={"sources": tuple(sources)})})

    manifest, warehouse = pipeline.manifest, f"{pipeline.project.warehouse}/"
    return manifest.model_copy(update={"datasets": tuple(map(entry, manifest.datasets))})


def incremental_entry(pipeline: ResolvedPipeline, dataset: Dataset) -> IncrementalEntry:
    """What one view allows."""
    frame = pipeline.evaluation.frames[dataset.name]
    known = view_eligibility(dataset, frame)
    return IncrementalEntry(
        policy=str(dataset.refresh_policy),
        eligible=not known.issues,
        issues=tuple(issue.as_dict() for issue in known.issues),
        sources=tuple(
            _techniques(pipeline, known.plan.leaf(one.leaf), one, frame.columns)
            for one in known.leaves
            if known.plan is not None
        ),
    )


def read_columns(pipeline: ResolvedPipeline, dataset: Dataset) -> dict[str, frozenset[str] | None]:
    """For each table that a view reads the columns that its result depends on; None where a subquery in an expression reads it."""
    plan = view_eligibility(dataset, pipeline.evaluation.frames[dataset.name]).plan
    if plan is None:
        return {}
    used, columns, outside = used_columns(plan.root), dict[str, set[str]](), list[str]()
    for node in plan.root.leaves:
        if _is_table(plan.leaf(node.number)):
            outside.append(_source(pipeline, plan.leaf(node.number)))
            names = {one.name for one in node.exprs("output") if one.id in used[node.number]}
            columns.setdefault(outside[-1], set()).update(names)
    every = [_source(pipeline, leaf) for leaf in plan.all_leaves if _is_table(leaf)]
    return {one: None if every.count(one) > outside.count(one) else frozenset(columns[one]) for one in every}


def _is_table(leaf: Any) -> bool:
    return simple_name(leaf) == "LogicalRelation" and descends_from(leaf.relation(), "HadoopFsRelation")


def _techniques(
    pipeline: ResolvedPipeline, relation: Any, leaf: LeafTechniques, columns: Sequence[str]
) -> SourceTechniques:
    if not descends_from(relation.relation(), "HadoopFsRelation"):  # a change feed that is read as a table
        kind = simple_name(relation.relation())
        return SourceTechniques(source=kind, rows_added=RECOMPUTED, rows_changed=RECOMPUTED)
    return SourceTechniques(
        source=_source(pipeline, relation),
        rows_added=str(leaf.grown or RECOMPUTED),
        rows_changed=str(leaf.changed or RECOMPUTED),
        found_by=tuple(columns[place] for place in leaf.columns),
    )


def _source(pipeline: ResolvedPipeline, relation: Any) -> str:
    paths = [str(path.toString()) for path in items(relation.relation().location().rootPaths())]
    # Tables of the pipeline are read by stand-ins, in folders of their names.
    stubs = str(pipeline.evaluation.stubs)
    return ", ".join(
        path.rpartition("/")[2] if stubs in path else path.removeprefix("file:") for path in paths
    )
