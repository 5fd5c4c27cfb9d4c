"""The Spark side of ``headwater explain``: whether a view can be refreshed by what changed, and how it was last time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.checkpoints.layout import flow_checkpoint
from headwater.contract.printing import print_json, print_table
from headwater.contract.quantities import size
from headwater.definitions.dataset import Dataset, DatasetKind
from headwater.definitions.expectation import needs_judgement
from headwater.errors import UnknownDataset
from headwater.graph.pipeline_project import PipelineProject
from headwater.incremental.techniques import Issue, IssueType
from headwater.suggestions import did_you_mean, nearest
from headwater_spark.commands.view_outlook import RECOMPUTED, outlook
from headwater_spark.plans.plan_walk import items
from headwater_spark.resolution.graph_resolution import ResolvedPipeline, resolved_pipeline
from headwater_spark.session import start_session
from headwater_spark.views.eligibility import leaf_techniques, never_incremental
from headwater_spark.views.plan_surgery import ViewPlan


def explain_view(project: PipelineProject, name: str, *, as_json: bool) -> int:
    """Print how a materialized view is refreshed; nothing is written.

    Raises:
        UnknownDataset: the pipeline has no materialized view of that name.
        InvalidPipeline: its definition can't be run.
    """
    spark = start_session(f"{project.pipeline_id} explain", project.spark_conf)
    with resolved_pipeline(project, spark) as pipeline:
        explained = explain(pipeline, name)
    if as_json:
        print_json(explained)
    else:
        _show(explained)
    return 0


def explain(pipeline: ResolvedPipeline, name: str) -> dict[str, Any]:
    """What can be done for a view, source by source, and what its last refresh did."""
    dataset = _view(pipeline, name)
    frame = pipeline.evaluation.frames[dataset.name]
    plan = ViewPlan(frame)
    types = [field.dataType.simpleString() for field in frame.schema.fields]
    issues = never_incremental(plan.root, types, plan.undetermined())
    if needs_judgement(dataset.expectations):
        reason = "rules that quarantine rows, or look for duplicates, judge all rows together"
        issues = [Issue(IssueType.EXPECTATIONS_NOT_SUPPORTED, reason), *issues]
    sources = [
        {
            "source": _source(pipeline, plan.leaf(source.leaf)),
            "rows_added": str(source.grown or RECOMPUTED),
            "rows_changed": str(source.changed or RECOMPUTED),
            "found_by": [frame.columns[place] for place in source.columns],
        }
        for source in ([] if issues else leaf_techniques(plan.root, types))
    ]
    state = flow_checkpoint(pipeline.project.state_folder, dataset.name, dataset.name).read_state()
    refresh = dict(state.refresh) if state is not None else {}
    settings = {**pipeline.project.configuration, **_settings(pipeline, dataset)}
    return {
        "view": dataset.name,
        "refresh_policy": str(dataset.refresh_policy),
        "eligible": not issues,
        "issues": [issue.as_dict() for issue in issues],
        "sources": sources,
        "last_refresh": refresh or None,
        "next_refresh": outlook(pipeline, dataset.name, sources, refresh, settings),
    }


def _settings(pipeline: ResolvedPipeline, view: Dataset) -> dict[str, str]:
    flow = next((one for one in pipeline.registry.flows() if one.target == view.name), None)
    return dict(flow.spark_conf) if flow is not None else {}


def _view(pipeline: ResolvedPipeline, name: str) -> Dataset:
    evaluation = pipeline.evaluation
    dataset = evaluation.names.dataset(name)
    if dataset is not None and evaluation.kind_of(dataset) is DatasetKind.MATERIALIZED_VIEW:
        return dataset
    views = [
        d.name for d in pipeline.registry.datasets() if evaluation.kind_of(d) is DatasetKind.MATERIALIZED_VIEW
    ]
    raise UnknownDataset(
        f"The pipeline has no materialized view {name!r}.",
        remedy=did_you_mean(nearest(name, views), f"It has: {', '.join(views) or 'none'}."),
    )


def _source(pipeline: ResolvedPipeline, relation: Any) -> str:
    paths = [str(path.toString()) for path in items(relation.relation().location().rootPaths())]
    # Tables of the pipeline are read by stand-ins, in folders of their names.
    stubs = str(pipeline.evaluation.stubs)
    return ", ".join(
        path.rpartition("/")[2] if stubs in path else path.removeprefix("file:") for path in paths
    )


def _show(explained: Mapping[str, Any]) -> None:
    print("== Incremental Update Eligibility ==")
    can = "can be incrementally refreshed" if explained["eligible"] else "cannot be incrementally refreshed"
    print(f"The Materialized View {can}. Its refresh policy is {explained['refresh_policy']}.\n")
    print("== Detailed Incrementalization Info ==")
    for issue in explained["issues"]:
        print(f"{issue['issue_type']}: {issue['reason']}")
    if not explained["issues"]:
        print("No issues detected.")
    print()
    if explained["sources"]:
        rows = [
            [one["source"], one["rows_added"], one["rows_changed"], ", ".join(one["found_by"])]
            for one in explained["sources"]
        ]
        print_table(
            "If one source changed", ["source", "only new rows", "rows changed or went", "found by"], rows
        )
    _show_next(explained["next_refresh"])
    last = explained["last_refresh"]
    if last is not None:
        print(f"\nThe last refresh: {last.get('technique')}. {last.get('reason') or ''}".rstrip())
        if last.get("full_seconds"):
            print(f"The last full refresh took {last['full_seconds']} s.")


def _show_next(following: Mapping[str, Any]) -> None:
    rows = [
        (
            name,
            size(facts["bytes"]),
            facts.get("since_last_refresh", "not known"),
            size(facts.get("changed_bytes")),
        )
        for name, facts in following["sources"].items()
    ]
    print()
    print_table("Since the last refresh", ("source", "size", "rows", "in changed files"), rows)
    print()
    print_table(
        "What the sources need",
        ("source", "needs"),
        [(n, f["needs"]) for n, f in following["sources"].items()],
    )
    ways = [
        (one["technique"], f"{one['seconds']} s", size(one["bytes_read"])) for one in following["candidates"]
    ]
    print()
    print_table("What the next refresh is expected to take", ("technique", "time", "reads"), ways)
    if "under_auto" in following:
        print(f'With refresh_policy="auto" it is {following["under_auto"]}.')
    if "not_incremental" in following:
        print(f"The next refresh recomputes it: {following['not_incremental']}.")
