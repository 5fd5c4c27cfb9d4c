"""``verify``: whether a pipeline is as one in production should be. No JVM is started."""

from __future__ import annotations

from headwater.contract.printing import print_json, print_table
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.stored_manifest import stored_manifest
from headwater.verification.facts import Verdict
from headwater.verification.lines import LINES, verify
from headwater.verification.reading import production_facts

_STYLES = {Verdict.PASS: "", Verdict.FAIL: "red", Verdict.UNKNOWN: "yellow"}


def show_verification(project: PipelineProject, *, strict: bool, as_json: bool) -> int:
    """Print each line with its evidence; the exit code is 1 where one fails, with ``strict`` also where one is not known."""
    lines = verify(production_facts(project, stored_manifest(project)))
    counts = {verdict: sum(line.verdict is verdict for line in lines) for verdict in Verdict}
    bad = counts[Verdict.FAIL] + (counts[Verdict.UNKNOWN] if strict else 0)
    if as_json:
        tally = {str(verdict): count for verdict, count in counts.items()}
        shown = [line.as_dict() for line in lines]
        print_json({"pipeline_id": project.pipeline_id, "verified": not bad, "counts": tally, "lines": shown})
        return int(bad > 0)
    for group in LINES:
        own = [line for line in lines if line.group == group]
        rows = [(line.number, line.title, line.verdict.upper(), line.evidence) for line in own]
        styles = [_STYLES[line.verdict] for line in own]
        print_table(
            f"{project.pipeline_id}: {group}", ("", "", "verdict", "evidence"), rows, row_styles=styles
        )
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    return int(bad > 0)
