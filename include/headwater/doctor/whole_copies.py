"""Which copy of a checkpoint a flow can go on from: a repair copies what it meets, whole or damaged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

from headwater.checkpoints.offsets import committed_batches, read_offsets
from headwater.doctor.flow_case import FlowCase
from headwater.doctor.repair_plan import RepairNotPossible
from headwater.doctor.snapshots import Snapshot
from headwater.preflight.checks import Check, examine
from headwater.preflight.damage import Damage
from headwater.preflight.flow_start import FlowStart
from headwater.preflight.source_checks import file_log_was_lost
from headwater.preflight.state_checks import state_was_lost
from headwater.preflight.state_schemas import schema_is_damaged
from headwater.storage.place import Place


@dataclass(frozen=True)
class _StartFromCopy(FlowStart):
    """A start whose checkpoint is a copy."""

    copy: Place | None = None

    @property
    def folder(self) -> Place:
        assert self.copy is not None
        return self.copy


def newest_whole(case: FlowCase) -> tuple[Snapshot, dict[str, str]]:
    """The newest copy that a flow can go on from, and what is wrong with newer ones, by their names.

    Where no copy has a batch that is done, the newest of all.

    Raises:
        RepairNotPossible: where each copy is damaged.
        HeadwaterError: where it is not known for now whether one is.
    """
    with_batches = [s for s in case.snapshots if s.last_batch is not None and committed_batches(s.checkpoint)]
    faults: dict[str, str] = {}
    for snapshot in reversed(with_batches):
        damages = _damages(case, snapshot)
        if not damages:
            return snapshot, faults
        for damage in damages:
            if damage.error.transient:  # it may be whole: an older one would be another position
                raise damage.error
        faults[snapshot.name] = damages[0].condition
    if not faults:
        return case.snapshots[-1], {}
    raise RepairNotPossible(
        f"No snapshot of {case.flow.name!r} is whole: {listed(faults)}.",
        remedy="`headwater checkpoints diagnose PIPELINE_DIR` lists what else can be done; --snapshot NAME takes a damaged one all the same.",
    )


def listed(faults: dict[str, str]) -> str:
    """Names of copies, each with what is wrong with it."""
    return ", ".join(f"{name} has {condition}" for name, condition in faults.items())


def _damages(case: FlowCase, snapshot: Snapshot) -> list[Damage]:
    values = {field.name: getattr(case.start, field.name) for field in fields(FlowStart)}
    start = _StartFromCopy(**{**values, "state": snapshot.state()}, copy=snapshot.checkpoint)
    return examine(start, _CHECKS)


def _position_is_damaged(start: FlowStart) -> Iterator[Damage]:
    """Raises CheckpointUnreadable, which is a finding, where the last batch that is done can't be read."""
    read_offsets(start.folder, max(set(start.planned) & set(start.committed)))
    yield from ()


# What a restored copy keeps. Its query id is a new one, and batches that were not done are left out.
_CHECKS: tuple[Check, ...] = (_position_is_damaged, state_was_lost, schema_is_damaged, file_log_was_lost)
