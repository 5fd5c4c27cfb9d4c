"""What advice there is on a pipeline now. No JVM is started."""

from __future__ import annotations

from headwater.advice.finding import Advice
from headwater.advice.reading import pipeline_facts
from headwater.advice.rules import advise
from headwater_airflow.conditions.condition import observed_pipeline


def read_advice(pipeline: str) -> list[Advice]:
    """The findings, warnings first; none before the first update.

    Raises:
        HeadwaterError: there is no such pipeline, or its event log can't be read.
    """
    project, manifest = observed_pipeline(pipeline, None)
    return [] if manifest is None else advise(pipeline_facts(project, manifest))
