"""``maintenance``: what is due in the pipeline's tables and storage; ``--yes`` does it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from headwater.commands.run import report_of_program
from headwater.contract.maintenance_arguments import maintenance_options
from headwater.contract.maintenance_report import JOB, finish, plan_lines, tell
from headwater.contract.printing import print_json
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.stored_manifest import stored_manifest
from headwater.maintenance.chore import ChoreKind
from headwater.maintenance.maintain import Ending, Outcome, maintain
from headwater.maintenance.maintenance_plan import MaintenancePlan, chores, look
from headwater.storage.conditions import StoreUnreachable


def maintenance(project: PipelineProject, parsed: argparse.Namespace, argv: Sequence[str]) -> int:
    """Print what is due; with ``--yes`` do it, and hand what needs Spark over to a driver.

    Args:
        argv: the command line behind the verb, for the driver.

    Raises:
        ManifestNotFound, UnknownDataset: nothing was changed.
        UpdateInProgress: where an update runs for longer than ``--wait``; nothing was changed.
        MaintenanceFailed: where steps failed; the others were done.
    """
    due = chores(project, stored_manifest(project), maintenance_options(parsed))
    plan = look(due)
    show_plan(project, plan)
    if not parsed.yes:
        if plan.steps:
            print("Nothing was changed. Add --yes to do it.", file=sys.stderr)
        if parsed.as_json:
            print_json({"state": "PLANNED", "plan": plan.as_dict()})
        return 0
    outcomes = maintain(project, due, wait=parsed.wait, tell=tell) if plan.is_due else []
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
    error = report["error"] or {}
    message = str(error.get("message", "the driver failed"))
    away = error.get("condition") == StoreUnreachable.condition
    return [Outcome(step.kind, step.subject, Ending.FAILED, message, passes=away) for step in plan.for_spark]


def show_plan(project: PipelineProject, plan: MaintenancePlan) -> None:
    """Print what would be done, and what not and why."""
    for line in plan_lines(project.pipeline_id, plan):
        print(line, file=sys.stderr)
