"""Carrying maintenance out, chore by chore: each under the pipeline's lease, and a failure does not stop the others.

Decision 0118.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from headwater.doctor.begun_actions import record_begun
from headwater.errors import HeadwaterError, LeaseLost, MaintenanceFailed, UpdateInProgress
from headwater.event_log.details import operation_progress
from headwater.event_log.redaction import quoted
from headwater.event_log.writer import EventLogWriter
from headwater.graph.pipeline_project import PipelineProject
from headwater.leases.lease import Lease
from headwater.maintenance.chore import Chore, ChoreKind, Engine, LeftOut, Rewriter, Step
from headwater.storage.conditions import StoreUnreachable

_MAINTENANCE = "MAINTENANCE"


class Ending(StrEnum):
    """How a step ended. LEFT: a conflict with another writer; the next run retries it."""

    COMPLETED = "COMPLETED"
    LEFT = "LEFT"
    FAILED = "FAILED"


@dataclass(frozen=True)
class Outcome:
    """The outcome of a step, in words. ``passes``: whether it failed for nothing but a store that was away."""

    kind: ChoreKind
    subject: str
    ending: Ending
    message: str
    passes: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The outcome as JSON values."""
        return {
            "kind": str(self.kind),
            "subject": self.subject,
            "state": str(self.ending),
            "message": self.message,
        }


def maintain(
    project: PipelineProject,
    chores: Sequence[Chore],
    *,
    engine: Engine = Engine.HERE,
    rewrite: Rewriter | None = None,
    wait: timedelta = timedelta(0),
    tell: Callable[[Outcome], None] = lambda _: None,
) -> list[Outcome]:
    """Do what is due, of one engine's steps.

    The lease is taken for each chore separately, so that a waiting update gets its turn between two of them. Each chore looks
    again once it holds the lease: what was planned before may no longer be so.

    Args:
        rewrite: how Spark rewrites a table, for its steps.
        wait: how long to wait for an update to end, at each chore.
        tell: is called with each outcome at once.

    Raises:
        UpdateInProgress: where the first chore does not get the lease; nothing was done.
        LeaseLost: where the lease was taken away while a chore looked; it and those after it were not done.
    """
    run_id = f"maintenance-{uuid.uuid4()}"
    outcomes: list[Outcome] = []
    name = project.spec.name
    folder, pipeline_id = project.state_folder, project.pipeline_id
    with EventLogWriter(folder, pipeline_id, name, run_id, maintenance_id=run_id) as events:
        for chore in chores:
            try:
                with project.lease(run_id, wait=wait) as lease:
                    if not outcomes:
                        record_begun(project)
                    outcome = _one(chore, lease, engine, rewrite)
            except UpdateInProgress as error:
                if not outcomes:
                    raise
                outcome = Outcome(chore.kind, chore.subject, Ending.LEFT, error.what)
            if outcome is None:
                continue
            outcomes.append(outcome)
            tell(outcome)
            events.emit(
                "operation_progress",
                f"Maintenance, {outcome.kind} of {outcome.subject}: {outcome.message}",
                level="INFO" if outcome.ending is Ending.COMPLETED else "WARN",
                details=operation_progress(
                    _MAINTENANCE,
                    str(outcome.ending),
                    None,
                    chore=str(outcome.kind),
                    subject=outcome.subject,
                ),
            )
    return outcomes


def check_outcomes(outcomes: Sequence[Outcome]) -> None:
    """Raise MaintenanceFailed where a step failed, naming all of them; StoreUnreachable where all of these failed for that."""
    failed = [outcome for outcome in outcomes if outcome.ending is Ending.FAILED]
    if failed:
        summary = "; ".join(f"{item.kind} of {item.subject}: {item.message}" for item in failed)
        kind = StoreUnreachable if all(outcome.passes for outcome in failed) else MaintenanceFailed
        raise kind(
            f"{len(failed)} of {len(outcomes)} steps of maintenance failed: {summary}.",
            remedy="The other steps were done. Correct what is named and run it again: headwater maintenance PIPELINE_DIR",
        )


def _one(chore: Chore, lease: Lease, engine: Engine, rewrite: Rewriter | None) -> Outcome | None:
    from deltalake.exceptions import CommitFailedError

    try:
        step = chore.look()
        if step is None or isinstance(step, LeftOut) or _not_ours(step, engine):
            return None
        lease.check()
        return Outcome(chore.kind, chore.subject, Ending.COMPLETED, chore.carry_out(step, rewrite))
    except LeaseLost:
        raise
    except CommitFailedError as error:
        note = f"another writer changed the table meanwhile; the next run tries again ({_first_line(error)})"
        return Outcome(chore.kind, chore.subject, Ending.LEFT, note)
    except HeadwaterError as error:
        away = isinstance(error, StoreUnreachable)
        return Outcome(chore.kind, chore.subject, Ending.FAILED, error.what, passes=away)
    except Exception as error:
        # A failure on one table must not stop the others.
        return Outcome(chore.kind, chore.subject, Ending.FAILED, quoted(error).partition("\n")[0][:300])


def _not_ours(step: Step, engine: Engine) -> bool:
    return step.engine is not engine


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__
