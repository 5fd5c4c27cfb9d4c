"""``graph``: the manifest as a picture."""

from __future__ import annotations

from headwater.contract.printing import print_json
from headwater.event_log.redaction import redact, redact_text
from headwater.graph.mermaid import mermaid
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.stored_manifest import stored_manifest


def show_graph(project: PipelineProject, *, as_json: bool) -> int:
    """Print the graph: Mermaid text, or the manifest as one line of JSON."""
    manifest = stored_manifest(project)
    if as_json:
        print_json(redact(manifest.model_dump(mode="json")))
    else:
        print(redact_text(mermaid(manifest)))
    return 0
