"""The Spark side of ``headwater explain``: whether a view can be refreshed by what changed, and how it was last time."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from headwater.checkpoints.layout import flow_checkpoint
from headwater.contract.printing import print_json, print_table
from headwater.contract.quantities import size
from headwater.definitions.dataset import Dataset, DatasetKind
from headwater.delta_log.table_history import table_exists
from headwater.errors import UnknownDataset
from headwater.graph.manifest import IncrementalEntry
from headwater.graph.pipeline_project import PipelineProject
from headwater.incremental.costs import Limits, full_runs
from headwater.incremental.issue_remedies import remedy
from headwater.incremental.next_refresh import NextRefresh
from headwater.incremental.source_changes import ChangeKind
from headwater.incremental.techniques import Issue, RefreshPolicy, Technique
from headwater.suggestions import did_you_mean, nearest
from headwater_spark.commands.view_outlook import outlook
from headwater_spark.plans.partition_texts import losing_texts
from headwater_spark.resolution.graph_resolution import ResolvedPipeline, resolved_pipeline
from headwater_spark.resolution.incremental_views import (
    as_written,
    eligibility_of,
    followed_tables,
    incremental_entry,
    read_columns,
    technique_for,
    view_flow,
    view_limits,
)
from headwater_spark.resolution.view_eligibility import Eligibility
from headwater_spark.session import start_session
from headwater_spark.views.partition_texts import has_null_partition
from headwater_spark.views.plan_shape import FILE_METADATA


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
    seen = eligibility_of(pipeline, dataset)
    known = incremental_entry(pipeline, dataset, seen)
    sources = [one.model_dump(mode="json") for one in known.sources]
    state = flow_checkpoint(pipeline.project.state_folder, dataset.name, dataset.name).read_state()
    refresh = dict(state.refresh) if state is not None else {}
    # Without the values given for that run.
    last_definition = state.definition_hash if state is not None else None
    flow = view_flow(pipeline, dataset)
    limits = view_limits(pipeline, dataset)
    following = outlook(
        pipeline, dataset.name, sources, refresh, limits, read_columns(pipeline, seen.plan),
        lambda changes: _followed_by(pipeline, dataset, seen, limits, changes),
    )  # fmt: skip
    following |= _as_written(following, dataset, known)
    expected = NextRefresh(
        RefreshPolicy(known.policy),
        eligible=known.eligible,
        enabled=limits.enabled,
        replaced_part=flow is not None and flow.replace_where is not None,
        looked_at=pipeline.manifest.flow(dataset.name).time_dependent,
        edited=not (last_definition or "").startswith(pipeline.manifest.source_hash),
    )
    own = {one.name for one in pipeline.manifest.datasets}
    by_place = any(issue.get("expression_name") == FILE_METADATA for issue in known.issues)
    return {
        "view": dataset.name,
        "refresh_policy": known.policy,
        "eligible": known.eligible,
        "issues": list(known.issues),
        "sources": sources,
        "last_refresh": refresh or None,
        "next_refresh": following | {"expected": _foreseen(expected, following, own, by_place=by_place).text},
    }


def _followed_by(
    pipeline: ResolvedPipeline,
    dataset: Dataset,
    seen: Eligibility,
    limits: Limits,
    changes: Mapping[str, ChangeKind],
) -> Technique | Issue | None:
    if seen.plan is None:
        return None
    tables, schema = followed_tables(pipeline, seen), pipeline.evaluation.frames[dataset.name].schema
    table = pipeline.manifest.table_path(pipeline.project.warehouse, dataset.name)
    texts = losing_texts([(one.name, one.dataType) for one in schema.fields], dataset.partition_columns)
    separable = not texts or not table_exists(table) or not has_null_partition(table, texts)
    return technique_for(dataset, seen.plan.root, tables, schema, changes, limits, separable=separable)


def _as_written(following: Mapping[str, Any], dataset: Dataset, known: IncrementalEntry) -> dict[str, Any]:
    """The technique that what changed is followed by, under the name that the event will have."""
    if "technique" not in following:
        return {}
    happened = {name: one.get("since_last_refresh") for name, one in following["sources"].items()}
    changed = {name for name, what in happened.items() if what != ChangeKind.UNCHANGED}
    before = following["technique"]
    name = as_written(before, dataset.partition_columns, known.sources, changed)
    ways = [
        one | {"technique": name} if one["technique"] == before else one for one in following["candidates"]
    ]
    return {"technique": name, "candidates": ways}


def _foreseen(
    declared: NextRefresh, following: Mapping[str, Any], own: Collection[str], *, by_place: bool
) -> NextRefresh:
    """The next refresh with what is known of the sources.

    Args:
        own: the pipeline's tables.
        by_place: where a row lies counts as well, which commits change that change no row.
    """
    moved = by_place and any(one.get("commits") for one in following["sources"].values())
    happened = {name: one.get("since_last_refresh") for name, one in following["sources"].items()}
    return replace(
        declared,
        unchanged=not moved and set(happened.values()) <= {str(ChangeKind.UNCHANGED)},
        against=following.get("not_incremental"),
        begins=following.get("begins", False),
        technique=following.get("technique"),
        seconds=following.get("incremental_seconds", 0.0),
        full=following["full_seconds"],
        rejected=following.get("rejected"),
        fed=sorted(set(happened) & set(own)),
        unknown=[name for name, one in happened.items() if one is None],
    )


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
    _show_eligibility(explained)
    following, last = explained["next_refresh"], explained["last_refresh"] or {}
    print(f"== Next Refresh ==\n{following['expected']}\n")
    if explained["sources"]:
        rows = [
            [_read(one), one["rows_added"], one["rows_changed"], ", ".join(one["found_by"])]
            for one in explained["sources"]
        ]
        columns = [
            "source",
            "if it only got new rows",
            "if rows changed or went",
            "the view's columns that name the changed part",
        ]
        print_table("How the view follows each source, where it alone changed", columns, rows)
    _show_sources(following)
    if "rejected" in following and explained["refresh_policy"] != RefreshPolicy.AUTO:
        print(f'With refresh_policy="auto" it would be recomputed: {following["rejected"]}.')
    if last:
        _show_last(last, following["full_seconds"])
    shown = {one[key] for one in explained["sources"] for key in ("rows_added", "rows_changed")}
    shown |= {one["technique"] for one in following["candidates"]} | {last.get("technique")}
    print("\nThe techniques:")
    for technique in Technique:
        if technique in shown or technique in following["expected"]:
            print(f"  {technique}: {technique.meaning}.")


def _read(source: Mapping[str, Any]) -> str:
    times = source["reads"]
    return str(source["source"]) + (f" (read {times} times)" if times > 1 else "")


def _show_eligibility(explained: Mapping[str, Any]) -> None:
    policy = RefreshPolicy(explained["refresh_policy"])
    print("== Incremental Update Eligibility ==")
    if explained["eligible"]:
        print(
            f"The Materialized View can be incrementally refreshed. Its refresh policy is {policy}: {policy.meaning}.\n"
        )
    else:
        print("The Materialized View cannot be incrementally refreshed: a refresh computes all of it.\n")
    print("== Detailed Incrementalization Info ==")
    for issue in explained["issues"]:
        print(f"{issue['issue_type']}: {issue['reason']}")
        names = (issue.get(key) for key in ("operator_name", "expression_name"))
        sub_type = next(
            (value for key, value in issue.items() if key.endswith(("sub_type", "subtype"))), None
        )
        if (advice := remedy(issue["issue_type"], sub_type, *names)) is not None:
            print(f"  what to do: {advice}")
    if not explained["issues"]:
        print("No issues detected.")
    print()


def _show_last(last: Mapping[str, Any], expected: float) -> None:
    reason = last.get("reason")
    print(f"\nThe last refresh: {last.get('technique')}" + (f": {reason}." if reason else "."))
    if last.get("full_seconds"):
        print(f"The last full refresh took {last['full_seconds']} s.")
    if len(full_runs(last)) == 1:
        print(
            f"It was the first one, by a driver that had just begun, and counts for less: the next is expected to take {expected} s."
        )


_HAPPENED = {
    ChangeKind.UNCHANGED: "nothing",
    ChangeKind.APPENDED: "new rows came",
    ChangeKind.CHANGED: "rows changed or went",
}


def _show_sources(following: Mapping[str, Any]) -> None:
    """What happened to the sources, what they need, and what both ways are expected to take."""
    rows, needs = [], []
    for name, facts in following["sources"].items():
        happened = facts.get("since_last_refresh", "not known")
        changed = size(facts.get("changed_bytes"))
        rows.append((name, size(facts["bytes"]), _HAPPENED.get(happened, happened), changed))
        needs.append((name, facts["needs"]))
    ways = [
        (one["technique"], f"{one['seconds']} s", size(one["bytes_read"])) for one in following["candidates"]
    ]
    happening = ("source", "size", "what happened to its rows", "size of the files they are in")
    for title, columns, shown in (
        ("Since the last refresh", happening, rows),
        ("What the sources need", ("source", "needs"), needs),
        (
            "Expected of both ways" if len(ways) > 1 else "Expected of a full refresh",
            ("technique", "time", "reads"),
            ways,
        ),
    ):
        print()
        print_table(title, columns, shown)
