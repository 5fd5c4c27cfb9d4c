"""``metrics``: the figures of a pipeline for Prometheus."""

from __future__ import annotations

from headwater.contract.printing import print_json
from headwater.graph.pipeline_project import PipelineProject
from headwater.telemetry.exposition import as_text, samples


def show_metrics(project: PipelineProject, *, as_json: bool) -> int:
    """Print them in Prometheus' text format, as a textfile collector takes them."""
    if as_json:
        figures = [sample.as_dict() for sample in samples([project])]
        print_json({"pipeline_id": project.pipeline_id, "samples": figures})
        return 0
    print(as_text(samples([project])), end="")
    return 0
