"""The doctor's findings in a pipeline's checkpoints, for the inspector. No JVM is started and no broker is queried."""

from __future__ import annotations

from dataclasses import replace

from headwater.doctor.diagnosis import Diagnosis, diagnose
from headwater.doctor.flow_cases import flow_cases
from headwater.errors import HeadwaterError, ManifestNotFound
from headwater.event_log.redaction import redact_text
from headwater.graph.pipeline_project import PipelineProject


def diagnoses(project: PipelineProject) -> tuple[list[Diagnosis], list[str]]:
    """Every finding with its remedies, and what could not be looked at, as sentences."""
    findings: list[Diagnosis] = []
    troubles: list[str] = []
    try:
        cases = [replace(case, brokers=False) for case in flow_cases(project, views=True)]
    except ManifestNotFound:
        return [], []
    except HeadwaterError as error:
        return [], [redact_text(error.what)]
    for case in cases:
        try:
            findings += diagnose(case)
        except Exception as error:  # one flow's failure must not hide the others' findings
            reason = getattr(error, "what", type(error).__name__)
            troubles.append(redact_text(f"{case.flow.name} can't be diagnosed: {reason}"))
    return findings, troubles
