"""``checkpoints``: what lies in storage."""

from __future__ import annotations

from headwater.checkpoints.listing import list_checkpoints
from headwater.commands.printing import age, print_json, print_table, size
from headwater.graph.pipeline_project import PipelineProject


def show_checkpoints(project: PipelineProject, *, as_json: bool) -> int:
    """Print every epoch of every flow."""
    found = list_checkpoints(project.state_folder)
    if as_json:
        entries = [entry.as_dict() for entry in found]
        print_json({"pipeline_id": project.pipeline_id, "checkpoints": entries})
        return 0
    rows = [
        (
            *(entry.dataset, entry.flow, entry.epoch, "live" if entry.live else "", entry.last_batch),
            *(age(entry.age), entry.problem or "; ".join(entry.offsets), size(entry.size)),
        )
        for entry in found
    ]
    columns = ("dataset", "flow", "epoch", "", "last batch", "age", "offsets", "size")
    styles = ["red" if entry.problem else "" for entry in found]
    print_table(f"{project.pipeline_id}: checkpoints", columns, rows, row_styles=styles)
    return 0
