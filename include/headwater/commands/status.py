"""``status``: the last update and the age of the tables."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from headwater.contract.printing import print_json, print_table
from headwater.contract.quantities import age, size
from headwater.doctor.half_way import half_way
from headwater.errors import HeadwaterError, ManifestNotFound, SourceUnreachable
from headwater.event_log import reader
from headwater.event_log.flow_result import CHANGE_COUNTS, FlowResult
from headwater.event_log.stream_measures import StreamMeasures, stream_measures
from headwater.event_log.update_summary import UpdateSummary
from headwater.graph.manifest import Manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.stored_manifest import stored_manifest
from headwater.metrics.freshness import freshness_as_far_as_known
from headwater.quarantine.location import quarantine_location
from headwater.quarantine.table import held_rows


def show_status(project: PipelineProject, *, as_json: bool, metrics: bool = False) -> int:
    """Print the last update, what each flow did in it, and how fresh each table is.

    ``metrics``: also rates, duration, state and watermark lag of each stream's newest batch.
    """
    latest = reader.latest_update(project.state_folder)
    flows = reader.flow_results(project.state_folder, update_id=latest.update_id) if latest else []
    manifest = _manifest(project)
    fresh = freshness_as_far_as_known(project, manifest) if manifest else []
    measured = stream_measures(project.state_folder) if metrics else []
    waiting, unknown = _quarantined_rows(project, manifest) if manifest else ({}, {})
    suspects = [entry.dataset for entry in fresh if entry.version is None and not entry.unknown]
    unfinished = half_way(project, manifest, suspects)
    if as_json:
        print_json(
            {
                "pipeline_id": project.pipeline_id,
                "update": latest.as_dict() if latest else None,
                "flows": [flow.as_dict() for flow in flows],
                "datasets": [entry.as_dict() for entry in fresh],
                **({"streams": [entry.as_dict() for entry in measured]} if metrics else {}),
                "held_rows": waiting,
                **({"held_rows_unknown": unknown} if unknown else {}),
                **({"half_way": [error.as_dict() for error in unfinished]} if unfinished else {}),
            }
        )
        return 0
    _show_unfinished(unfinished)
    if latest is None:
        print(f"{project.pipeline_id} has not run yet.")
        return 0
    _show_flows(project, latest, flows)
    rows = [
        (
            entry.dataset,
            entry.version,
            "not known" if entry.unknown else age(entry.seconds),
            "not known" if entry.dataset in unknown else waiting.get(entry.dataset),
        )
        for entry in fresh
    ]
    print_table("Newest data", ("dataset", "version", "age", "held in quarantine"), rows)
    for entry in fresh:
        if entry.unknown:
            print(f"{entry.dataset}: {entry.unknown}")
    for dataset, reason in unknown.items():
        print(f"the quarantine of {dataset}: {reason}")
    if metrics:
        _show_measures(measured)
    return 0


def _show_unfinished(unfinished: Sequence[HeadwaterError]) -> None:
    """Before all else: the rest is of what there is now."""
    for error in unfinished:
        print(f"{error.what} {error.remedy}")


def _show_flows(project: PipelineProject, latest: UpdateSummary, flows: Sequence[FlowResult]) -> None:
    ago = age((datetime.now(UTC) - latest.started).total_seconds())
    print_table(
        f"{project.pipeline_id}: update {latest.update_id} is {latest.state}, started {ago} ago",
        (
            "dataset",
            "flow",
            "state",
            "batches",
            "rows in",
            "rows out",
            "dropped",
            "quarantined",
            "took",
            "error",
        ),
        [
            (
                *(flow.dataset, flow.flow, flow.state, flow.batches, flow.input_rows, flow.output_rows),
                *(flow.dropped_rows, flow.quarantined_rows, age(flow.seconds)),
                (flow.error or "").partition("\n")[0],
            )
            for flow in flows
        ],
    )
    refreshed = [
        (flow.dataset, flow.technique, flow.output_rows, flow.reason or "")
        for flow in flows
        if flow.technique is not None
    ]
    if refreshed:
        print_table("Materialized views", ("view", "refreshed by", "rows written", "reason"), refreshed)
    merged = [
        (flow.dataset, flow.flow, *(flow.changes.get(name, 0) for name in CHANGE_COUNTS.values()))
        for flow in flows
        if flow.changes is not None
    ]
    if merged:
        print_table("Changes merged", ("dataset", "flow", *CHANGE_COUNTS.values()), merged)


def _show_measures(measured: list[StreamMeasures]) -> None:
    columns = (
        "flow",
        "batch",
        "age",
        "rows/s in",
        "rows/s done",
        "took",
        "state rows",
        "state",
        "watermark lag",
    )
    now = datetime.now(UTC)
    rows = [
        (
            *(entry.flow, entry.batch_id, age((now - entry.at).total_seconds())),
            *(entry.input_rows_per_second, entry.processed_rows_per_second),
            None if entry.batch_duration_ms is None else f"{entry.batch_duration_ms / 1000:.1f} s",
            *(entry.state_rows, size(entry.state_bytes), age(entry.watermark_lag_seconds)),
        )
        for entry in measured
    ]
    print_table("The newest batch of each stream", columns, rows)


def _quarantined_rows(project: PipelineProject, manifest: Manifest) -> tuple[dict[str, int], dict[str, str]]:
    """How many rows wait in each quarantine, and why that is not known of others."""
    paths = {e.name: quarantine_location(manifest, project.warehouse, e.name) for e in manifest.tables}
    waiting: dict[str, int] = {}
    unknown: dict[str, str] = {}
    for name, path in paths.items():
        if path is not None:
            try:
                waiting[name] = held_rows(path)
            except SourceUnreachable as error:
                unknown[name] = f"{error.what} {error.remedy}".strip()
    return waiting, unknown


def _manifest(project: PipelineProject) -> Manifest | None:
    try:
        return stored_manifest(project)
    except ManifestNotFound:
        return None
