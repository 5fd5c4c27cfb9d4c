"""``lateness``: how late rows come, and how long a watermark should wait."""

from __future__ import annotations

from headwater.contract.printing import print_json, print_table
from headwater.contract.quantities import age
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.spelled_names import known_name
from headwater.graph.stored_manifest import stored_manifest
from headwater.metrics.lateness import kind_of_delay, late_rows, table_lateness


def show_lateness(
    project: PipelineProject, dataset: str, event_time: str, arrival: str, *, as_json: bool
) -> int:
    """Print within which time the rows of a table came, and the delay of a watermark that waits for so many of them;
    then how many rows each flow's watermark has left out.
    """
    manifest = stored_manifest(project)
    dataset = known_name(manifest, dataset, (entry.name for entry in manifest.tables), "table")
    lateness = table_lateness(manifest.table_path(project.warehouse, dataset), event_time, arrival)
    left_out = late_rows(project.state_folder)
    if as_json:
        answer = {"pipeline_id": project.pipeline_id, "dataset": dataset, **lateness.as_dict()}
        print_json({**answer, "late_rows": left_out})
        return 0
    rows = [
        (f"{share:.1%}", age(lateness.by_share[share]), delay, kind_of_delay(delay))
        for share in lateness.by_share
        for delay in [lateness.advice(share)]
    ]
    rows.append(("all", age(lateness.longest), "", ""))
    columns = ("rows", "came within", "watermark", "")
    print_table(f"{dataset}: {lateness.rows:,} rows, {lateness.ahead:,} before their event", columns, rows)
    print(f'.withWatermark("{event_time}", "{lateness.advice()}") waits for 99% of the rows.')
    for flow, rows_left_out in left_out.items():
        print(f"{flow} has left out {rows_left_out:,} rows as late.")
    return 0
