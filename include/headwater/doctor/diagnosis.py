"""What is wrong with a flow, the evidence, and what each remedy would cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headwater.doctor.flow_case import FlowCase
from headwater.doctor.repair_plan import RepairOptions
from headwater.doctor.repairs import plan_repair
from headwater.errors import HeadwaterError
from headwater.event_log.redaction import quoted
from headwater.preflight.damage import Damage, Repair


@dataclass(frozen=True)
class Remedy:
    """A repair that may help. ``possible`` False: ``lost`` says why not; None: it can't be known now, and ``lost`` says why."""

    command: str
    possible: bool | None
    lost: str
    doubled: str


@dataclass(frozen=True)
class Diagnosis:
    """A finding of a flow, with its remedies, the safest first. ``flow``: empty where it is of the pipeline, which ``dataset`` then names a part of."""

    flow: str
    dataset: str
    damage: Damage
    remedies: tuple[Remedy, ...]

    def as_dict(self) -> dict[str, Any]:
        """The finding as JSON values."""
        return {
            "flow": self.flow,
            "dataset": self.dataset,
            **self.damage.error.as_dict(),
            "mends_itself": self.damage.mends_itself,
            "blocks": self.damage.blocks,
            "evidence": list(self.damage.evidence),
            "remedies": [
                {"command": r.command, "possible": r.possible, "lost": r.lost, "doubled": r.doubled}
                for r in self.remedies
            ],
        }


def diagnose(case: FlowCase) -> list[Diagnosis]:
    """Everything that the checks find in a flow, with remedies; changes nothing."""
    return [
        Diagnosis(
            case.flow.name,
            case.flow.target,
            damage,
            tuple(_remedy(case, action) for action in damage.repairs),
        )
        for damage in case.damages
    ]


def _remedy(case: FlowCase, action: Repair) -> Remedy:
    options = RepairOptions(from_start=action is Repair.NEW_EPOCH)
    more = " --from-start" if action is Repair.NEW_EPOCH else ""
    command = f"headwater repair {case.project.folder.name} {case.flow.name} --action {action}{more}"
    try:
        plan = plan_repair(case, action, options)
    except HeadwaterError as error:
        return Remedy(
            command, None if error.transient else False, f"{error.what} {error.remedy or ''}".strip(), ""
        )
    except Exception as error:
        # What a plan can't read is often the damage itself; the other remedies are planned all the same.
        return Remedy(command, False, f"It could not be planned: {quoted(error)}", "")
    return Remedy(command, True, plan.lost, plan.doubled)
