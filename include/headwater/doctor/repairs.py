"""The repairs of a flow's checkpoint: each shows its plan first and opens a new epoch; the old one stays.

Decision 0091.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from headwater.checkpoints.conditions import QueryIdChanged
from headwater.checkpoints.layout import FlowState
from headwater.checkpoints.log_entries import fault_of
from headwater.checkpoints.offsets import last_committed_batch, numbered
from headwater.checkpoints.table_move import refuse_old_names
from headwater.doctor.file_log_lines import Lines, file_offset, lines_of_log
from headwater.doctor.flow_case import FlowCase
from headwater.doctor.new_epoch_plan import plan_new_epoch
from headwater.doctor.open_epoch import lay_down, open_at
from headwater.doctor.repair_plan import NOTHING, Check, RepairNotPossible, RepairOptions, RepairPlan
from headwater.doctor.reprocessed_rows import REPLACED, chain, last_in_table, rows_after
from headwater.doctor.snapshots import Snapshot
from headwater.doctor.synthetic_checkpoint import copy_up_to, new_query_id
from headwater.doctor.whole_copies import listed, newest_whole
from headwater.errors import ResetNotAllowed
from headwater.graph.table_owners import refuse_foreign_tables
from headwater.graph.update_plan import Selection, plan_update
from headwater.preflight.damage import Repair
from headwater.preflight.flow_start import Positions
from headwater.preflight.state_checks import newest_whole_batch
from headwater.storage.place import Place


def plan_repair(case: FlowCase, action: Repair, options: RepairOptions) -> RepairPlan:
    """What a repair would do; changes nothing.

    Raises:
        RepairNotPossible: where what it needs is not there, or its result would be wrong for this flow.
        ResetNotAllowed: where the table's ``pipelines.reset.allowed`` is false and the repair would reset it.
        TableOwned: where another pipeline fills the table: an epoch created here would make it look like ours.
        TableMoved: where the table has another name now: an epoch created here would take the old one.
    """
    _ = case.seen  # of now: under the lease it is looked at again
    refuse_old_names(case.project.state_folder, {case.flow.target: case.target.defined_at})
    refuse_foreign_tables(case.project, case.manifest, [case.flow.target])
    if not case.flow.streaming and action is not Repair.FULL_REFRESH:
        raise RepairNotPossible(
            f"{case.flow.name!r} is not a stream: it has no checkpoint to repair.",
            remedy=f"Recompute it: headwater run PIPELINE_DIR --full-refresh {case.flow.target}",
        )
    return _PLANS[action](case, options)


def _mend(case: FlowCase, _: RepairOptions) -> RepairPlan:
    mending = [damage for damage in case.damages if damage.mend is not None]
    if case.damages and not mending:
        for damage in case.damages:
            if damage.error.transient:  # what is wrong is not known
                raise damage.error
        conditions = ", ".join(damage.condition for damage in case.damages)
        raise RepairNotPossible(
            f"There is nothing to repair in place in {case.flow.name!r} (found: {conditions}).",
            remedy="`headwater checkpoints diagnose PIPELINE_DIR` lists what else can be done.",
        )

    def carry_out(check: Check) -> str:
        done = []
        for damage in mending:
            assert damage.mend is not None
            check()  # what was found may be an entry that another process has written anew
            done.append(damage.mend())
        return "; ".join(done)

    foreign = any(damage.condition == QueryIdChanged.condition for damage in mending)
    again = (
        NOTHING
        if case.table is not None
        else "the rows of one batch, at most: the sink does not recognise a repeated batch"
    )
    return RepairPlan(
        Repair.MEND,
        case.flow.name,
        case.flow.target,
        tuple(f"{damage.condition}: repair {damage.error.where}" for damage in mending),
        "no rows, if the checkpoint is this flow's own" if foreign else NOTHING,
        again,
        carry_out,
    )


def _rebuild(case: FlowCase, _: RepairOptions) -> RepairPlan:
    if case.stateful:
        raise RepairNotPossible(
            f"{case.flow.name!r} keeps state, which can't be rebuilt from the table.",
            remedy="Restore a snapshot, go back to a batch with a whole state (rewind), or refill the table.",
        )
    if not case.positions and not case.damages:
        return _nothing_to_do(case, Repair.REBUILD)
    if not case.positions:
        raise RepairNotPossible(
            f"No position of epoch {case.epoch} of {case.flow.name!r} is known outside the checkpoint.",
            remedy="Begin a new epoch where you know that the table ends (new-epoch), or refill the table.",
        )
    written = case.written
    batch = max(case.positions)
    position = case.positions[batch]
    files = _files(case, position)
    return RepairPlan(
        Repair.REBUILD,
        case.flow.name,
        case.flow.target,
        (
            f"create epoch {case.unused_epoch()} at the end of batch {batch} of epoch {case.epoch}: "
            + "; ".join(text or "-" for text in position),
            "make it the live one; the old one stays",
        ),
        NOTHING,
        rows_after(case, batch) if written is None or written > batch else NOTHING,
        lambda check: open_at(case, position, files, check),
    )


def _nothing_to_do(case: FlowCase, action: Repair) -> RepairPlan:
    """As after one that was carried out, of which no answer came."""
    return RepairPlan(action, case.flow.name, case.flow.target, (), NOTHING, NOTHING, lambda _: "nothing")


def _files(case: FlowCase, position: Positions) -> dict[int, Lines]:
    folders: list[Place] = [
        case.start.folder,
        *(s.checkpoint for s in reversed(case.snapshots) if s.epoch == case.epoch),
    ]
    read_lines: dict[int, Lines] = {}
    for index, text in enumerate(position):
        last = file_offset(text)
        if last is None:
            continue
        lines = lines_of_log(folders, case.start, index, last)
        if lines is None:
            raise RepairNotPossible(
                f"Which files {case.flow.name!r} has read is only in the checkpoint, and that list is not complete.",
                where=case.start.folder / "sources" / str(index),
                remedy="Take all files that are older than a moment as read (new-epoch --from-time), or refill the table.",
            )
        read_lines[index] = lines
    return read_lines


def _rewind(case: FlowCase, options: RepairOptions) -> RepairPlan:
    start = case.start
    readable = {
        n for n in numbered(start.folder / "offsets") if fault_of(start.folder / "offsets" / str(n)) is None
    }
    batch = options.batch
    if batch is None:
        batch = _batch_to_go_back_to(case)
    if batch is None:
        raise RepairNotPossible(
            f"{case.flow.name!r} has no batch to go back to: none of its live epoch is whole, marked as done, and in the table.",
            where=start.folder,
            remedy="Restore a snapshot, begin a new epoch, or refill the table.",
        )
    needed = {batch} | ({batch - 1} if batch > 0 else set())
    if not needed <= readable:
        raise RepairNotPossible(
            f"The checkpoint of {case.flow.name!r} can't go back to batch {batch}: Spark needs the positions of "
            f"{sorted(needed)}, and it has {_span(readable)}.",
            where=start.folder,
            remedy="Name another batch, restore a snapshot, or refill the table.",
        )
    newest_whole = newest_whole_batch(start)
    if case.stateful and (newest_whole is None or batch > newest_whole):
        raise RepairNotPossible(
            f"The state of {case.flow.name!r} is whole up to batch {newest_whole}, not {batch}.",
            where=start.folder / "state",
            remedy="Name an earlier batch, restore a snapshot, or refill the table.",
        )
    return RepairPlan(
        Repair.REWIND,
        case.flow.name,
        case.flow.target,
        (
            f"copy epoch {case.epoch} as it was after batch {batch} to epoch {case.unused_epoch()}, under a new query id",
            "make it the live one; the old one stays",
        ),
        _lost_after(case, batch),
        rows_after(case, batch),
        lambda check: _copy(case, start.folder, batch, start.state, check),
    )


def _span(batches: set[int]) -> str:
    if not batches:
        return "none"
    first, last = min(batches), max(batches)
    contiguous = len(batches) == last - first + 1
    return f"{first} to {last}" if contiguous else ", ".join(map(str, sorted(batches)))


def _lost_after(case: FlowCase, batch: int) -> str:
    """What is left out by going on after a batch: the table may end before it."""
    last = last_in_table(case)
    if case.table is None or batch <= last:
        return NOTHING
    span = f"batch {batch}" if batch == last + 1 else f"batches {last + 1} to {batch}"
    return f"what {span} gave, if anything: the table has nothing of it"


def _batch_to_go_back_to(case: FlowCase) -> int | None:
    """The newest batch from which nothing is lost: that the table has, and whose state is whole."""
    candidates = [last_committed_batch(case.start.folder)]
    if case.stateful:
        candidates.append(newest_whole_batch(case.start))
    if case.table is not None:
        candidates.append(case.reached)
    batches = [batch for batch in candidates if batch is not None]
    return min(batches) if len(batches) == len(candidates) else None


def _restore(case: FlowCase, options: RepairOptions) -> RepairPlan:
    snapshot, passed_over = _chosen(case, options)
    last = snapshot.last_batch
    if last is None:
        raise RepairNotPossible(
            f"The snapshot {snapshot.name} was taken before the flow's first batch: there is nothing to go on from.",
            where=snapshot.folder,
            remedy="Take another one (--snapshot NAME), or begin a new epoch (new-epoch --from-start).",
        )
    same = snapshot.epoch == case.epoch or (case.written is None and snapshot.epoch in chain(case))
    batch = last
    if same and not case.stateful and case.written is not None and case.written > last:
        # The table has a batch that was planned when the snapshot was taken, and not yet marked as done.
        planned = numbered(snapshot.checkpoint / "offsets")
        batch = case.written if case.written in planned else last
    unknown = "can't be known: the snapshot is of another epoch than the live one"
    doubled = rows_after(case, batch) if same else unknown
    return RepairPlan(
        Repair.RESTORE,
        case.flow.name,
        case.flow.target,
        (
            f"copy the snapshot {snapshot.name} (batch {batch}) to epoch {case.unused_epoch()}, under a new query id"
            + (f"; newer ones are damaged: {listed(passed_over)}" if passed_over else ""),
            "make it the live one; the old one stays",
        ),
        _lost_after(case, batch) if same else unknown,
        REPLACED if case.by_key else doubled,
        lambda check: _copy(case, snapshot.checkpoint, batch, snapshot.state(), check),
    )


def _chosen(case: FlowCase, options: RepairOptions) -> tuple[Snapshot, dict[str, str]]:
    names = [snapshot.name for snapshot in case.snapshots]
    if options.snapshot is None and case.snapshots:
        return newest_whole(case)
    match = next((snapshot for snapshot in case.snapshots if snapshot.name == options.snapshot), None)
    if match is None:
        raise RepairNotPossible(
            f"There is no snapshot {options.snapshot!r} of {case.flow.name!r}."
            if options.snapshot
            else f"There is no snapshot of {case.flow.name!r}.",
            remedy=f"It has: {', '.join(names)}."
            if names
            else "`headwater checkpoints diagnose PIPELINE_DIR` lists what else can be done. "
            "For the next time: headwater checkpoints snapshot PIPELINE_DIR",
        )
    return match, {}


def _copy(case: FlowCase, source: Place, batch: int, state: FlowState, check: Check) -> str:
    identity = new_query_id()
    live_state = replace(
        state.opened(0),
        state_settings=state.state_settings,
        batch_settings=state.batch_settings,
        plan=state.plan,
        state_stores=state.state_stores,
        source_schemas=state.source_schemas,
        sources=state.sources,
        versions=state.versions,
        first_batch=batch + 1,
    )
    epoch = lay_down(
        case, lambda folder: copy_up_to(source, folder, identity, batch), live_state, identity, check
    )
    return f"epoch {epoch} is live, as after batch {batch}"


def _full_refresh(case: FlowCase, _: RepairOptions) -> RepairPlan:
    selection = Selection(full_refresh=(case.flow.target,))
    plan = plan_update(case.manifest, selection)
    return RepairPlan(
        Repair.FULL_REFRESH,
        case.flow.name,
        case.flow.target,
        tuple(str(stage) for stage in (*plan.resets, *plan.refreshes)),
        "rows whose sources no longer hold them; how many can't be known without reading the sources",
        NOTHING if case.target.sink_format is None else "all rows are sent again",
        lambda _: "an update refills the table",
        by_update=True,
    )


def _new_epoch(case: FlowCase, options: RepairOptions) -> RepairPlan:
    if options.from_start and not case.may_reset:
        raise ResetNotAllowed(
            f"The table {case.flow.target!r} must not be reset: its property pipelines.reset.allowed is false.",
            where=case.target.defined_at,
            remedy="Begin at a version, offsets or a time, or remove the property.",
        )
    return plan_new_epoch(case, options)


_PLANS: dict[Repair, Callable[[FlowCase, RepairOptions], RepairPlan]] = {
    Repair.MEND: _mend,
    Repair.REBUILD: _rebuild,
    Repair.REWIND: _rewind,
    Repair.RESTORE: _restore,
    Repair.NEW_EPOCH: _new_epoch,
    Repair.FULL_REFRESH: _full_refresh,
}
