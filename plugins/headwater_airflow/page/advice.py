"""The findings of advice about a pipeline, for the page. No JVM is started and no broker is queried."""

from __future__ import annotations

from headwater.advice.finding import Advice
from headwater.advice.reading import pipeline_facts
from headwater.advice.rules import advise
from headwater.errors import HeadwaterError
from headwater.event_log.redaction import redact_text
from headwater.graph.manifest import Manifest
from headwater.graph.pipeline_project import PipelineProject


def pipeline_advice(project: PipelineProject, manifest: Manifest | None) -> tuple[list[Advice], list[str]]:
    """Every finding, and what could not be looked at, as sentences; none of both before there is a graph."""
    if manifest is None:
        return [], []
    try:
        return advise(pipeline_facts(project, manifest, brokers=False)), []
    except HeadwaterError as error:
        return [], [redact_text(f"There is no advice: {error.what}")]
