"""``status``: the last update and the age of the tables."""

from __future__ import annotations

from datetime import UTC, datetime

from headwater.commands.printing import age, print_json, print_table
from headwater.commands.stored_manifest import stored_manifest
from headwater.errors import ManifestNotFound
from headwater.event_log import reader
from headwater.graph.manifest import Manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater.metrics.freshness import pipeline_freshness


def show_status(project: PipelineProject, *, as_json: bool) -> int:
    """Print the last update, what each flow did in it, and how fresh each table is."""
    latest = reader.latest_update(project.state_folder)
    flows = reader.flow_results(project.state_folder, update_id=latest.update_id) if latest else []
    manifest = _manifest(project)
    fresh = pipeline_freshness(project, manifest) if manifest else []
    if as_json:
        print_json(
            {
                "pipeline_id": project.pipeline_id,
                "update": latest.as_dict() if latest else None,
                "flows": [flow.as_dict() for flow in flows],
                "datasets": [entry.as_dict() for entry in fresh],
            }
        )
        return 0
    if latest is None:
        print(f"{project.pipeline_id} has not run yet.")
        return 0
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
    rows = [(entry.dataset, entry.version, age(entry.seconds)) for entry in fresh]
    print_table("Newest data", ("dataset", "version", "age"), rows)
    return 0


def _manifest(project: PipelineProject) -> Manifest | None:
    try:
        return stored_manifest(project)
    except ManifestNotFound:
        return None
