"""``maintenance``: what is due in the pipeline's tables and storage; ``--yes`` does it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from headwater.commands.maintenance_arguments import maintenance_options
from headwater.commands.printing import print_json, size
from headwater.commands.run import report_of_program
from headwater.commands.stored_manifest import stored_manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater.maintenance.chore import ChoreKind, Engine, Step
from headwater.maintenance.maintain import Ending, Outcome, check_outcomes, maintain
from headwater.maintenance.maintenance_plan import MaintenancePlan, chores, look

JOB = "run_maintenance.py"


def maintenance(project: PipelineProject, parsed: argparse.Namespace, argv: Sequence[str]) -> int:
    """Print what is due; with ``--yes`` do it, and hand what needs Spark over to a driver.

    Args:
        argv: the command line behind the verb, for the driver.

    Raises:
        ManifestNotFound, UnknownDataset: nothing was changed.
        UpdateInProgress: where an update runs for longer than ``--wait``; nothing was changed.
        MaintenanceFailed: where steps failed; the others were done.
    """
    found = chores(project, stored_manifest(project), maintenance_options(parsed))
    plan = look(found)
    show_plan(project, plan)
    if not parsed.yes:
        if plan.steps:
            print("Nothing was changed. Add --yes to do it.", file=sys.stderr)
        if parsed.as_json:
            print_json({"state": "PLANNED", "plan": plan.as_dict()})
        return 0
    outcomes = maintain(project, found, wait=parsed.wait, tell=tell) if plan.steps else []
    if plan.for_spark:
        outcomes += by_spark(plan, argv)
    finish(outcomes, as_json=parsed.as_json)
    return 0


def by_spark(plan: MaintenancePlan, argv: Sequence[str]) -> list[Outcome]:
    """Let a driver do its steps, and read its report."""
    report = report_of_program(JOB, [*argv, *([] if "--json" in argv else ["--json"])])
    return driver_outcomes(plan, report)


def driver_outcomes(plan: MaintenancePlan, report: Mapping[str, Any]) -> list[Outcome]:
    """What a driver reports: its steps, or that they failed with it."""
    if "error" not in report:
        steps = report.get("steps") or ()
        return [Outcome(ChoreKind(s["kind"]), s["subject"], Ending(s["state"]), s["message"]) for s in steps]
    told = str((report["error"] or {}).get("message", "the driver failed"))
    return [Outcome(step.kind, step.subject, Ending.FAILED, told) for step in plan.for_spark]


def finish(outcomes: Sequence[Outcome], *, as_json: bool) -> None:
    """Report; raises MaintenanceFailed where a step failed."""
    check_outcomes(outcomes)
    if as_json:
        print_json({"state": "COMPLETED", "steps": [outcome.as_dict() for outcome in outcomes]})


def tell(outcome: Outcome) -> None:
    """Print an outcome as it comes."""
    print(f"{outcome.ending}: {outcome.kind} of {outcome.subject}: {outcome.told}", file=sys.stderr)


def show_plan(project: PipelineProject, plan: MaintenancePlan) -> None:
    """Print what would be done, and what not and why."""
    for line in plan_lines(project.pipeline_id, plan):
        print(line, file=sys.stderr)


def plan_lines(pipeline: str, plan: MaintenancePlan) -> list[str]:
    """The plan as lines of text."""
    if not plan.steps and not plan.left_out:
        return [f"Nothing is due in {pipeline}."]
    head = [f"Maintenance of {pipeline}:"] if plan.steps else [f"Nothing is due in {pipeline}."]
    steps = [f"  {step.kind} of {step.subject}: {step.what} ({_counts(step)})" for step in plan.steps]
    remarks = [f"  {item.kind} of {item.subject} is left out: {item.why}" for item in plan.left_out]
    return [*head, *steps, *remarks]


def _counts(step: Step) -> str:
    rows = [] if step.rows is None else [f"{step.rows:,} rows"]
    where = ["by Spark"] if step.engine is Engine.SPARK else []
    return ", ".join([f"{step.files:,} files", size(step.bytes), *rows, *where])
