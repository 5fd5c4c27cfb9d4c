"""The Spark side of ``headwater explain``: whether a view can be refreshed by what changed, and how it was last time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.checkpoints.layout import flow_checkpoint
from headwater.contract.printing import print_json, print_table
from headwater.contract.quantities import size
from headwater.definitions.dataset import Dataset, DatasetKind
from headwater.errors import UnknownDataset
from headwater.graph.pipeline_project import PipelineProject
from headwater.incremental.source_changes import ChangeKind
from headwater.incremental.techniques import RefreshPolicy, Technique
from headwater.suggestions import did_you_mean, nearest
from headwater_spark.commands.view_outlook import outlook
from headwater_spark.resolution.graph_resolution import ResolvedPipeline, resolved_pipeline
from headwater_spark.resolution.incremental_views import incremental_entry
from headwater_spark.session import start_session


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
    known = incremental_entry(pipeline, dataset)
    sources = [one.model_dump(mode="json") for one in known.sources]
    state = flow_checkpoint(pipeline.project.state_folder, dataset.name, dataset.name).read_state()
    refresh = dict(state.refresh) if state is not None else {}
    settings = {**pipeline.project.configuration, **_settings(pipeline, dataset)}
    return {
        "view": dataset.name,
        "refresh_policy": known.policy,
        "eligible": known.eligible,
        "issues": list(known.issues),
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


def _show(explained: Mapping[str, Any]) -> None:
    policy = RefreshPolicy(explained["refresh_policy"])
    print("== Incremental Update Eligibility ==")
    can = "can be incrementally refreshed" if explained["eligible"] else "cannot be incrementally refreshed"
    print(f"The Materialized View {can}. Its refresh policy is {policy}: {policy.meaning}.\n")
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
        columns = [
            "source",
            "if it only got new rows",
            "if rows changed or went",
            "columns that name the changed part",
        ]
        print_table("How the view follows one source", columns, rows)
    _show_next(explained["next_refresh"], eligible=explained["eligible"])
    last = explained["last_refresh"]
    if last is not None:
        print(f"\nThe last refresh: {last.get('technique')}. {last.get('reason') or ''}".rstrip())
        if last.get("full_seconds"):
            print(f"The last full refresh took {last['full_seconds']} s.")
    shown = {one[key] for one in explained["sources"] for key in ("rows_added", "rows_changed")}
    shown |= {one["technique"] for one in explained["next_refresh"]["candidates"]}
    print("\nThe techniques:")
    for technique in Technique:
        if technique in shown or technique == (last or {}).get("technique"):
            print(f"  {technique}: {technique.meaning}.")


_HAPPENED = {
    ChangeKind.UNCHANGED: "nothing",
    ChangeKind.APPENDED: "new rows came",
    ChangeKind.CHANGED: "rows changed or went",
}


def _show_next(following: Mapping[str, Any], *, eligible: bool) -> None:
    happened = {
        name: facts.get("since_last_refresh", "not known") for name, facts in following["sources"].items()
    }
    rows = [
        (
            name,
            size(facts["bytes"]),
            _HAPPENED.get(happened[name], happened[name]),
            size(facts.get("changed_bytes")),
        )
        for name, facts in following["sources"].items()
    ]
    print()
    print_table(
        "Since the last refresh",
        ("source", "size", "what happened to its rows", "size of the files they are in"),
        rows,
    )
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
    elif eligible and set(happened.values()) == {ChangeKind.UNCHANGED}:
        print("No source has changed since the last refresh: the next one leaves the view as it is (NO_OP).")
