"""Carrying a repair out: under the lease, with a snapshot before and a record after."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from headwater.checkpoints.begun_action import BegunAction, begin_action, end_action
from headwater.doctor.begun_actions import record_begun
from headwater.doctor.flow_case import FlowCase
from headwater.doctor.repair_plan import RepairPlan
from headwater.doctor.snapshots import BEFORE, Snapshot, take_snapshot
from headwater.errors import RefusedForSafety, StorageFailed
from headwater.event_log.writer import EventLogWriter
from headwater.preflight.damage import Repair


@dataclass(frozen=True)
class Surgery:
    """What a repair did. ``snapshot``: a copy of the checkpoint before it, None where there was none."""

    plan: RepairPlan
    done: str
    snapshot: Snapshot | None

    def as_dict(self) -> dict[str, Any]:
        """The repair as JSON values."""
        return {
            **self.plan.as_dict(),
            "done": self.done,
            "snapshot": self.snapshot.name if self.snapshot else None,
        }


@contextmanager
def _storage(case: FlowCase) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageFailed(
            f"Storage can't be written to: {error.strerror or error}.",
            where=error.filename or case.project.state_folder,
            remedy="Make room, or give the right to write, and run the same command again. What was live before is still live.",
        ) from None


def _refuse_outdated(case: FlowCase, plan: RepairPlan) -> None:
    """Refuse a plan that was made of another checkpoint than the one that is there now: what it says of rows is no longer so."""
    if replace(case).seen != case.seen:
        raise RefusedForSafety(
            f"The checkpoint of {plan.flow!r} has changed since this repair was planned: an update or another repair was at it meanwhile.",
            where=case.start.checkpoint.folder,
            remedy="Nothing was changed. Look at the plan of now, and carry that one out: run the same command again.",
        )


def snapshot_flow(case: FlowCase, *, reason: str) -> Snapshot | None:
    """Copy a flow's live checkpoint, under the lease; raises UpdateInProgress where an update runs, LeaseLost where one may since."""
    with _storage(case), case.project.lease(f"snapshot-{uuid.uuid4()}") as lease:
        return take_snapshot(
            case.project.state_folder, case.start.checkpoint, reason=reason, check=lease.check
        )


def operate(case: FlowCase, plan: RepairPlan) -> Surgery:
    """Carry out a plan; ``case`` is the one it was made of.

    Raises:
        UpdateInProgress: where an update, or another repair, holds the lease; nothing was changed.
        RefusedForSafety: where one of them came between the plan and the lease; nothing was changed.
        StorageFailed: where storage can't be written to; what was live before is still live.
    """
    project = case.project
    repair_id = str(uuid.uuid4())
    with _storage(case), project.lease(f"repair-{repair_id}") as lease:
        _refuse_outdated(case, plan)
        snapshot = take_snapshot(
            project.state_folder,
            case.start.checkpoint,
            reason=f"{BEFORE}{plan.action}",
            check=lease.check,
        )
        before = case.epoch
        record_begun(project)
        begin_action(project.state_folder, _begun(repair_id, plan, before, snapshot))
        done = plan.carry_out(lease.check)
        state = case.start.checkpoint.read_state()
        with EventLogWriter(
            project.state_folder, project.pipeline_id, project.spec.name, repair_id
        ) as events:
            events.emit(
                "user_action",
                f"{plan.action} of {plan.flow}: {done}. Lost: {plan.lost}. Doubled: {plan.doubled}.",
                level="WARN",
                flow=plan.flow,
                dataset=plan.dataset,
                epoch=state.epoch if state is not None else before,
                details={
                    "user_action": {
                        "action": "REPAIR",
                        "repair": str(plan.action),
                        "done": done,
                        "lost": plan.lost,
                        "doubled": plan.doubled,
                        "snapshot": snapshot.name if snapshot is not None else None,
                        "epoch_before": before,
                        "epoch": state.epoch if state is not None else before,
                    }
                },
            )
        end_action(project.state_folder, repair_id)
    return Surgery(plan, done, snapshot)


def _begun(repair_id: str, plan: RepairPlan, epoch: int, snapshot: Snapshot | None) -> BegunAction:
    steps = "; ".join(plan.steps)
    return BegunAction(
        repair_id,
        plan.dataset,
        f"{plan.action} of {plan.flow} was begun: {steps}. Lost: {plan.lost}. Doubled: {plan.doubled}.",
        {
            "action": "REPAIR",
            "repair": str(plan.action),
            "done": steps,
            "lost": plan.lost,
            "doubled": plan.doubled,
            "snapshot": snapshot.name if snapshot is not None else None,
            "epoch_before": epoch,
        },
        plan.flow,
        None if plan.action is Repair.MEND else epoch,
    )
