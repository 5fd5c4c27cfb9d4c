"""Records beside a table of changes that can't be read: the flow would be refused by them once Spark is up."""

from __future__ import annotations

from collections.abc import Iterator

from headwater.checkpoints.change_record import change_record
from headwater.checkpoints.conditions import FlowStateDamaged
from headwater.checkpoints.flow_role import FlowRole
from headwater.checkpoints.layout import change_memory
from headwater.checkpoints.snapshot_versions import SnapshotPosition, SnapshotVersions
from headwater.delta_log.table_history import has_transaction
from headwater.preflight.damage import Damage, Repair
from headwater.preflight.flow_start import FlowStart
from headwater.storage.place import Place


def change_record_is_damaged(start: FlowStart) -> Iterator[Damage]:
    """Without it a change of keys or columns would not be noticed, and old rows would be mixed with others."""
    if start.role in (FlowRole.CHANGES, FlowRole.SNAPSHOTS):
        try:
            change_record(_memory(start))
        except FlowStateDamaged as error:
            yield Damage(error, (str(error.what),), (Repair.FULL_REFRESH,))


def snapshot_versions_are_damaged(start: FlowStart) -> Iterator[Damage]:
    """The table's commits say which snapshots it has, as far as its log goes back."""
    if start.role is not FlowRole.SNAPSHOTS:
        return
    versions = SnapshotVersions(_memory(start) / "snapshots.json", start.application)
    try:
        versions.read()
    except FlowStateDamaged as error:
        known = _in_table(start, versions)

        def mend() -> str:
            assert known is not None
            versions.write(known)
            return f"by the table's log its last snapshot is {known.version!r}, which was written down again"

        yield Damage(
            error,
            (
                f"the last snapshot by the table's log: {known.version!r}"
                if known
                else "the table's log names no snapshot",
            ),
            (Repair.FULL_REFRESH,),
            mend if known is not None else None,
        )


def _in_table(start: FlowStart, versions: SnapshotVersions) -> SnapshotPosition | None:
    """The position by the table's log: before the first snapshot where it has none of this epoch, None where it does not say."""
    if start.table is None or start.sink_id is None:
        return None
    if not has_transaction(start.table, start.application, 0):
        return SnapshotPosition()
    return versions.in_table(start.table, start.identity, start.state.epoch)


def _memory(start: FlowStart) -> Place:
    return change_memory(start.checkpoint.folder.parents[2], start.dataset)
