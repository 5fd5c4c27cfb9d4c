"""``advise``: what to do about a pipeline, with the numbers that say so. No JVM is started."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.advice.finding import Advice
from headwater.advice.reading import pipeline_facts
from headwater.advice.rules import advise
from headwater.contract.printing import print_json
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.stored_manifest import stored_manifest


def show_advice(project: PipelineProject, *, as_json: bool) -> int:
    """Print each finding with its evidence and remedies, the cheapest first; the exit code is 0 whatever was found."""
    facts = pipeline_facts(project, stored_manifest(project))
    findings = advise(facts)
    if as_json:
        print_json(
            {"pipeline_id": project.pipeline_id, "findings": [finding.as_dict() for finding in findings]}
        )
        return 0
    if not findings:
        judged = any(flow.batches for flow in facts.flows)
        why = "" if judged else " No batch has run with the present definition yet: run the pipeline."
        print(f"{project.pipeline_id}: nothing to advise.{why}")
        return 0
    _explain(findings)
    return 0


def _explain(findings: Sequence[Advice]) -> None:
    for finding in findings:
        print(f"{finding.severity} {finding.code}  {finding.subject}: {finding.message}")
        for fact in finding.evidence:
            print(f"  evidence: {fact}")
        for number, remedy in enumerate(finding.remedies, start=1):
            print(f"  remedy {number}: {remedy.what}")
            for setting in remedy.settings:
                print(f"      write: {setting}\n      where: {setting.place}")
            for command in remedy.commands:
                print(f"      run: {command}")
            print(f"      cost: {remedy.cost}")
        print()
