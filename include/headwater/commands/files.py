"""``files``: what was taken in from folders, and when."""

from __future__ import annotations

from datetime import UTC, datetime

from headwater.contract.printing import print_json, print_table
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.spelled_names import known_name
from headwater.graph.stored_manifest import stored_manifest
from headwater.metrics.file_history import IngestedFile, ingested_files


def show_files(project: PipelineProject, flow: str | None, limit: int, *, as_json: bool) -> int:
    """Print the newest ``limit`` files of one flow, or of all flows that read files, newest last."""
    manifest = stored_manifest(project)
    if flow is not None:
        flow = known_name(manifest, flow, (entry.name for entry in manifest.flows), "flow")
    flows = [entry for entry in manifest.flows if flow is None or entry.name == flow]
    ingested: list[IngestedFile] = []
    for entry in flows:
        ingested += ingested_files(project.state_folder, entry.target, entry.name)
    ingested = ingested[-limit:] if limit else ingested
    if as_json:
        files = [
            {**file.as_dict(), "modified_at": _moment(file)} for file in ingested
        ]  # fmt: skip
        print_json({"pipeline_id": project.pipeline_id, "files": files})
        return 0
    rows = [
        (
            file.flow,
            file.path,
            f"{_moment(file):%Y-%m-%d %H:%M:%S}",
            file.state,
            file.batch,
            f"{file.ingested_at:%Y-%m-%d %H:%M:%S}" if file.ingested_at else None,
        )
        for file in ingested
    ]
    columns = ("flow", "file", "modified (UTC)", "state", "batch", "ingested (UTC)")
    print_table(f"{project.pipeline_id}: files", columns, rows)
    return 0


def _moment(file: IngestedFile) -> datetime:
    return datetime.fromtimestamp(file.modified_ms / 1000, UTC)
