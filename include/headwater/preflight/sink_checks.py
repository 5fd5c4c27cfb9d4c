"""Position against table: mismatches that Spark does not notice, and that would lose or double rows.

Decision 0244, decision 0245.
"""

from __future__ import annotations

from collections.abc import Iterator

from headwater.checkpoints.conditions import (
    CheckpointLost,
    CheckpointRewound,
    QueryIdChanged,
    TableGone,
    TableLogDamaged,
    TableLogHole,
    TableReplaced,
    TableRolledBack,
    TransactionsExpire,
)
from headwater.checkpoints.flow_role import FlowRole
from headwater.checkpoints.offsets import query_id
from headwater.delta_log.commits import checksums_of, commit_versions
from headwater.delta_log.damaged_commits import damaged_checkpoint, damaged_commit
from headwater.delta_log.table_history import (
    TRANSACTION_RETENTION,
    epochs_written,
    head_version,
    missing_versions,
    table_exists,
    transaction_retention,
)
from headwater.errors import CheckpointUnreadable
from headwater.files.atomic_files import write_atomically
from headwater.preflight.damage import Damage, Repair
from headwater.preflight.flow_start import FlowStart
from headwater.storage.place import Place


def table_log_has_a_hole(start: FlowStart) -> Iterator[Damage]:
    """Nothing can open such a table, so other findings about it would mislead."""
    if start.table is not None:
        yield from holes_in_log(start.table, start.place)


def holes_in_log(table: Place, named: str) -> Iterator[Damage]:
    """The finding on a table of which a version is missing between others; ``named`` is what messages call it."""
    holes = missing_versions(table) if table_exists(table) else []
    if holes:
        yield Damage(
            TableLogHole(
                f"The log of {named} has a hole: version {holes[0]} is missing, and later ones are there.",
                where=table / "_delta_log",
                remedy="Restore the file from a backup. Nothing can read or write the table until then.",
            ),
            (f"missing versions: {holes[:10]}",),
        )


def commit_is_damaged(start: FlowStart) -> Iterator[Damage]:
    """A disk that lost power leaves a file empty or cut, and so may whoever copies objects: Delta reads an empty commit as one without rows."""
    if start.table is not None:
        yield from damage_in_log(
            start.table,
            start.place,
            "What it wrote may be missing.",
            f"{start.show()} then says which batches the table lacks, and how they are read again.",
            readable=start.sink_id is not None,
        )


def damage_in_log(
    table: Place, named: str, loss: str, then: str, *, readable: bool = True
) -> Iterator[Damage]:
    """The finding on a table with a damaged commit.

    Args:
        table: the table's folder.
        named: what messages call it.
        loss: what the commit may have cost, a sentence.
        then: what follows when the newest commit is moved away, for want of a backup.
        readable: as for ``damaged_commit``.
    """
    try:
        damaged = damaged_commit(table, readable=readable)
    except FileNotFoundError:  # cleaned away meanwhile, after later ones
        return
    if damaged is not None:
        file, fault = damaged
        version = int(file.stem)
        yield Damage(
            TableLogDamaged(
                f"A commit of {named}, version {version}, is damaged: {fault}. {loss}",
                where=file,
                remedy="Restore the file from a backup. If there is none and it is the newest, move it away with its checksums "
                f"({checksums_of(file)}): {then}",
            ),
            (f"version {version}: {fault}",),
        )
    elif table_exists(table):
        yield from _damaged_checkpoint(table, named, readable=readable)


def _damaged_checkpoint(table: Place, named: str, *, readable: bool) -> Iterator[Damage]:
    damaged = damaged_checkpoint(table, readable=readable)
    if damaged is None:
        return
    file, fault = damaged
    # Without the checkpoint a table is made of its commits, where all of them are there.
    whole = commit_versions(table)[:1] == [0] and not missing_versions(table)
    yield Damage(
        TableLogDamaged(
            f"A checkpoint of the log of {named} is damaged: {fault}. Nothing can open the table until it is gone or whole.",
            where=file,
            remedy="Restore the file from a backup; or move away what is left of it, and `_last_checkpoint` beside it: the log has every commit "
            "since the first one, so that nothing is lost."
            if whole
            else "Restore the file from a backup. Without it the table's older rows are not known: the commits before it were cleaned "
            "away. If there is no backup, move the table's folder away and refill it: headwater run PIPELINE_DIR --full-refresh TABLE",
        ),
        (f"{file.name}: {fault}", f"the log has every commit: {'yes' if whole else 'no'}"),
    )


def batches_are_forgotten(start: FlowStart) -> Iterator[Damage]:
    """Delta recognises a repeated batch by its id; a table that forgets ids would take it for a new one."""
    if start.table is None or start.sink_id is None or not table_exists(start.table):
        return
    retention = transaction_retention(start.table)
    if retention is not None:
        yield Damage(
            TransactionsExpire(
                f"{_capital(start.place)} has the property {TRANSACTION_RETENTION} = {retention!r}: it forgets which batches of "
                f"{start.flow!r} it has, and one that comes again after a crash would be written twice.",
                where=start.table,
                remedy=f"Remove the property: ALTER TABLE delta.`{start.table}` UNSET TBLPROPERTIES ('{TRANSACTION_RETENTION}'). "
                "Remove it from table_properties, too, if it stands there.",
            ),
            (f"ids are kept for: {retention}",),
        )


def table_was_dropped(start: FlowStart) -> Iterator[Damage]:
    """The checkpoint says that rows were written, and the table is not there: they would never come back."""
    # A driver that was killed in its first update may have committed batches before it recorded the table.
    there = start.table is not None and table_exists(start.table)
    if start.sink_id is None and not there and start.checkpoint.has_written():
        last = max(start.committed, default=None)
        yield Damage(
            TableGone(
                f"{_capital(start.place)} is gone, and the checkpoint of {start.flow!r} is not: "
                f"rows that were read before would be missing for good.{_written_elsewhere(start)}",
                where=start.table,
                remedy=_remedy_or_other_roots(start),
            ),
            (f"epoch {start.state.epoch} has written up to batch {last}", "the table has no log"),
            (Repair.FULL_REFRESH, Repair.NEW_EPOCH),
        )


def table_was_recreated(start: FlowStart) -> Iterator[Damage]:
    """The table is another one than the checkpoint wrote to."""
    before, now = start.state.sink_id, start.sink_id
    if before is not None and now is not None and before != now:
        yield Damage(
            TableReplaced(
                f"{_capital(start.place)} is not the one that {start.flow!r} last wrote to (it was recreated, or is "
                f"another one): rows that were read before would be missing for good.{_written_elsewhere(start)}",
                where=start.table or now,
                remedy=_remedy_or_other_roots(start),
            ),
            (f"written to: {before}", f"there now: {now}"),
            (Repair.FULL_REFRESH, Repair.NEW_EPOCH),
        )


def table_was_rolled_back(start: FlowStart) -> Iterator[Damage]:
    """The table is an older copy of itself: what was written since is gone, and would not be read again."""
    recorded = start.state.sink_version
    if (
        start.table is None
        or start.sink_id is None
        or recorded is None
        or start.state.sink_id != start.sink_id
    ):
        return
    now = head_version(start.table)
    if now < recorded:
        yield Damage(
            TableRolledBack(
                f"{_capital(start.place)} ends at version {now}, and {start.flow!r} had left it at {recorded}: an older copy "
                f"was put in its place. Rows that were written since would be missing for good.{_written_elsewhere(start)}",
                where=start.table,
                remedy=f"Put back the newer copy, or {last_remedy(start)}",
            ),
            (f"version after the last run: {recorded}", f"version now: {now}"),
            (Repair.FULL_REFRESH,)
            if start.role in (FlowRole.ONCE, FlowRole.SNAPSHOTS)
            else (Repair.REWIND, Repair.FULL_REFRESH),
        )


def checkpoint_was_lost(start: FlowStart) -> Iterator[Damage]:
    """The flow has written to this table, and its checkpoint is empty: everything would be appended again."""
    has_content = (start.folder / "metadata").exists() or bool(start.planned)
    if has_content and start.checkpoint.state_file.exists() and not _logs_are_lost(start):
        return
    # Where the flow's state is gone as well, the table's log still names its writers.
    written = epochs_written(start.table, *start.identity.names) if start.table is not None else []
    first_not_kept = start.state.epoch + int(has_content)
    lost = not has_content or _logs_are_lost(start)
    known = start.state.sink_id is not None or _folder_is_lost(start)
    if (known and lost) or any(epoch >= first_not_kept for epoch in written):
        yield Damage(
            CheckpointLost(
                f"The checkpoint of {start.flow!r} is gone, and {start.place} has its rows: "
                "all of them would be written a second time.",
                where=start.folder,
                remedy=f"Rebuild the position: {start.command('rebuild')}; or {last_remedy(start)}",
            ),
            (
                f"epochs that the table's log knows: {', '.join(map(str, written)) or 'none'}",
                f"epoch {start.state.epoch} has neither metadata nor offsets",
            ),
            (Repair.RESTORE, Repair.REBUILD, Repair.NEW_EPOCH, Repair.FULL_REFRESH),
        )


def _folder_is_lost(start: FlowStart) -> bool:
    """Whether nothing is left of a flow that sent rows to a sink without a table."""
    return start.table is None and not start.checkpoint.state_file.exists() and start.sent_before()


def _logs_are_lost(start: FlowStart) -> bool:
    """Whether both logs are empty, though batches are recorded, and the target does not say which it has."""
    if (
        start.table is not None
        or start.planned
        or start.committed
        or not (start.folder / "metadata").exists()
    ):
        return False
    return start.last_recorded() is not None


def checkpoint_was_rewound(start: FlowStart) -> Iterator[Damage]:
    """The table has later batches: new rows would come under their numbers, and Delta would leave them out."""
    last = max(start.planned, default=-1)
    # Where batches are marked as done that are not planned, the offset log has lost its end.
    if start.written is None or start.written <= max([last, *start.committed]):
        return
    if last < 0 and not (start.folder / "metadata").exists():
        return  # the checkpoint is lost as a whole
    yield Damage(
        CheckpointRewound(
            f"{_capital(start.place)} has batches of {start.flow!r} up to {start.written}, and its checkpoint ends at "
            f"{last if last >= 0 else 'none'}: the next rows would come under numbers that the table has, and be left out.",
            where=start.folder,
            remedy=f"Rebuild the position: {start.command('rebuild')}; or {last_remedy(start)}",
        ),
        (f"last batch in the table: {start.written}", f"last batch in the offset log: {last}"),
        (Repair.RESTORE, Repair.REBUILD, Repair.FULL_REFRESH),
    )


def query_id_was_changed(start: FlowStart) -> Iterator[Damage]:
    """The Delta sink recognises batches by the query's id: with another one, a batch in flight would be written twice."""
    file = start.folder / "metadata"
    recorded = start.state.query_id
    try:
        now = query_id(start.folder)
    except CheckpointUnreadable:
        return
    if recorded is None or now is None or recorded == now:
        return

    def mend() -> str:
        write_metadata(start, recorded)
        return f"the query id {recorded} was put back"

    yield Damage(
        QueryIdChanged(
            f"The checkpoint of {start.flow!r} has another query id than the flow has written under: a batch in flight "
            "would be written twice, or the checkpoint is another flow's.",
            where=file,
            remedy=f"If the checkpoint is this flow's, put the id back: {start.command('mend')}",
        ),
        (f"recorded: {recorded}", f"in the checkpoint: {now}"),
        (Repair.MEND, Repair.RESTORE, Repair.FULL_REFRESH),
        mend,
        unasked=False,
    )


def commits_behind_the_state(start: FlowStart) -> tuple[Place, str, str, int, int] | None:
    """Of an update that was killed before it wrote the flow's state: table, pipeline, flow, epoch and the version behind which its commits are.

    None where the table has no commit behind the last run.
    """
    table, state = start.table, start.state
    if table is None or start.sink_id is None or state.sink_id not in (None, start.sink_id):
        return None
    since = state.sink_version if state.sink_version is not None else -1
    return (table, *start.identity.names, state.epoch, since) if head_version(table) > since else None


def write_metadata(start: FlowStart, identity: str) -> None:
    """Write Spark's file with the query id."""
    (start.folder / ".metadata.crc").unlink(missing_ok=True)
    write_atomically(start.folder / "metadata", f'{{"id":"{identity}"}}')


def remedy(start: FlowStart) -> str:
    """The remedy that makes position and rows agree in any case."""
    if start.is_sink:
        return (
            f"Send everything again: headwater run PIPELINE_DIR --reset-checkpoint {start.flow}. To go on from here with another place, "
            "put back the old one first, or give the flow another name."
        )
    return f"Refill the table from its sources: headwater run PIPELINE_DIR --full-refresh {start.dataset}"


def last_remedy(start: FlowStart) -> str:
    """As ``remedy``, behind others in a sentence: it begins in lower case."""
    text = remedy(start)
    return text[:1].lower() + text[1:]


def _is_elsewhere(start: FlowStart) -> bool:
    return start.state.table is not None and start.table is not None and start.state.table != str(start.table)


def _written_elsewhere(start: FlowStart) -> str:
    """The sentence for a run whose tables lie elsewhere: two deployments share one storage, or the warehouse was moved."""
    return f" The last run wrote to {start.state.table}." if _is_elsewhere(start) else ""


def _remedy_or_other_roots(start: FlowStart) -> str:
    if not _is_elsewhere(start):
        return remedy(start)
    return (
        "Run it with the warehouse of the last run. Where this is another deployment, give it a storage of its own (`storage`, "
        "HEADWATER_STORAGE): two that share one have one position for two tables. Only if the table was given up for this one: "
        f"{last_remedy(start)}"
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
