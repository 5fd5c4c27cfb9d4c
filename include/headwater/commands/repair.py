"""``repair``: the plan and its cost first; ``--yes`` carries it out."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from headwater.commands.run import become_job
from headwater.contract.arguments import RunArguments
from headwater.contract.printing import print_json
from headwater.doctor.begun_actions import record_left
from headwater.doctor.flow_cases import named_case, refuse_half_way
from headwater.doctor.repair_plan import RepairOptions
from headwater.doctor.repairs import plan_repair
from headwater.doctor.surgery import operate
from headwater.graph.pipeline_project import PipelineProject
from headwater.preflight.damage import Repair


@dataclass(frozen=True)
class RepairRequest:
    """The requested repair. ``yes``: carry it out, not only show it."""

    action: Repair
    flow: str
    options: RepairOptions
    yes: bool


def repair(project: PipelineProject, request: RepairRequest, *, as_json: bool) -> int:
    """Print the plan; with ``yes`` carry it out, and print what was done.

    Raises:
        RefusedForSafety: where the repair is not possible, or not allowed; nothing was changed.
    """
    refuse_half_way(project)  # not only by the lease: a plan would be one for half of what there is
    case = named_case(project, request.flow)
    plan = plan_repair(case, request.action, request.options)
    if not plan.steps:
        # As after a repair that was killed when all was done: whoever runs it again has what was wanted, but for its record.
        if request.yes:
            record_left(project)
        print(f"Nothing is wrong with the checkpoint of {plan.flow}: nothing to do.", file=sys.stderr)
        if as_json:
            print_json({"state": "COMPLETED" if request.yes else "PLANNED", "plan": plan.as_dict()})
        return 0
    print(plan, file=sys.stderr)
    if not request.yes:
        print("Nothing was changed. Add --yes to carry it out.", file=sys.stderr)
        if as_json:
            print_json({"state": "PLANNED", "plan": plan.as_dict()})
        return 0
    surgery = operate(case, plan)
    if surgery.snapshot is not None:
        print(f"A copy of what was there before: {surgery.snapshot.name}", file=sys.stderr)
    print(f"Done: {surgery.done}.", file=sys.stderr)
    if plan.by_update:
        # Spark is needed to empty a table: this process becomes the update, and its report is the answer.
        become_job(
            RunArguments(
                str(project.folder),
                storage=str(project.storage),
                warehouse=str(project.warehouse),
                parameters=dict(project.parameters),
                as_json=as_json,
                full_refresh=(plan.dataset,),
            )
        )
    if as_json:
        print_json({"state": "COMPLETED", "repair": surgery.as_dict()})
    return 0
