"""``lag``: how far each flow is behind."""

from __future__ import annotations

from headwater.contract.printing import print_json, print_table
from headwater.contract.quantities import age, size
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.stored_manifest import stored_manifest
from headwater.metrics.lag import pipeline_lag


def show_lag(project: PipelineProject, *, as_json: bool) -> int:
    """Print the backlog of every flow, one row a source."""
    lags = pipeline_lag(project, stored_manifest(project))
    if as_json:
        print_json({"pipeline_id": project.pipeline_id, "flows": [lag.as_dict() for lag in lags]})
        return 0
    rows = [
        (
            *(lag.dataset, lag.flow, part.name),
            *(part.backlog.records, part.backlog.files, part.backlog.versions),
            *(
                size(part.backlog.bytes),
                age(part.backlog.seconds),
                part.backlog.unknown or _news(part.backlog.moved),
            ),
        )
        for lag in lags
        for part in lag.sources
    ]
    columns = ("dataset", "flow", "source", "records", "files", "commits", "size", "age of oldest", "")
    print_table(f"{project.pipeline_id}: not read yet", columns, rows)
    return 0


def _news(moved: bool | None) -> str:
    return {True: "behind", False: "up to date", None: ""}[moved]
