"""The report of maintenance: what is due, each outcome as it comes, and how it ended."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from headwater.contract.printing import print_json
from headwater.contract.quantities import size
from headwater.maintenance.chore import Engine, Step
from headwater.maintenance.maintain import Ending, Outcome, check_outcomes
from headwater.maintenance.maintenance_plan import MaintenancePlan

JOB = "run_maintenance.py"
_log = logging.getLogger("headwater.maintenance")


def finish(outcomes: Sequence[Outcome], *, as_json: bool) -> None:
    """Report; raises MaintenanceFailed where a step failed."""
    check_outcomes(outcomes)
    if as_json:
        print_json({"state": "COMPLETED", "steps": [outcome.as_dict() for outcome in outcomes]})


def tell(outcome: Outcome) -> None:
    """Log an outcome as it comes."""
    level = logging.ERROR if outcome.ending is Ending.FAILED else logging.INFO
    _log.log(level, "%s: %s of %s: %s", outcome.ending, outcome.kind, outcome.subject, outcome.message)


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
