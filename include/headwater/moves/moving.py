"""Carrying out a rename or a move of a table: every step is one folder or one file, and can be repeated.

The order is: copies of the checkpoints; the journal, from which on nobody else writes; the names that commits go on to
carry; the folders; the mark at the old name; what is recorded. A crash between any two is ended by the same command. A
folder on a disk is renamed; one on a store is copied, compared and removed.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

from headwater.checkpoints.conditions import NameTaken
from headwater.checkpoints.flow_identity import FlowIdentity, as_text, read_names
from headwater.checkpoints.guarded_files import end_guarded, write_guarded
from headwater.checkpoints.table_move import (
    TableMove,
    end_journal,
    forget_mark,
    mark_old_name,
    read_journal,
    write_journals,
)
from headwater.doctor.begun_actions import record_begun
from headwater.doctor.snapshots import BEFORE, take_snapshot
from headwater.errors import StorageFailed
from headwater.event_log.details import FlowStatus, flow_progress
from headwater.event_log.reader import has_user_action, last_batches
from headwater.event_log.writer import EventLogWriter
from headwater.files.atomic_files import make_folders, sync_folder
from headwater.graph.pipeline_project import PipelineProject
from headwater.metastore.following import follow_stored
from headwater.moves.move_plan import MovePlan, is_left_over, plan_move
from headwater.moves.move_request import Wish
from headwater.moves.moved_folders import flow_folders
from headwater.moves.moved_manifest import rewrite_manifests
from headwater.moves.stored_folders import carry_over
from headwater.storage.object_path import ObjectPath
from headwater.storage.place import Place, local_only

Step = Callable[[], None]


def move_table(wish: Wish) -> MovePlan:
    """Carry a request out, or finish what an earlier run of it began.

    Raises:
        UpdateInProgress: where an update of one of the pipelines runs; nothing was changed.
        StorageFailed: where a folder can't be renamed; the same command goes on from there.
        NameTaken: something has come to the new place of a folder; the same command goes on once that is elsewhere.
        LeaseLost: this process stood still for so long that another one may write; the same command goes on from there.
        All that ``plan_move`` raises; nothing was changed.
    """
    projects = {project.state_folder: project for project in (wish.target, wish.source)}
    with ExitStack() as stack:
        holder = f"move-{uuid.uuid4()}"
        leases = [stack.enter_context(each.lease(holder, moving=True)) for each in projects.values()]

        def check() -> None:
            for lease in leases:
                lease.check()

        # Only now nothing moves any more.
        plan = plan_move(wish)
        for project in projects.values():
            record_begun(project)
        for step in steps(plan, wish, check):
            check()
            try:
                step()
            except OSError as error:
                check()  # what is gone may be another process's doing
                if isinstance(error, FileExistsError):
                    raise _taken(wish, error) from None
                raise StorageFailed(
                    f"The table {wish.dataset!r} could not be moved: {error.strerror or error}.",
                    where=error.filename,
                    remedy=f"Make room, or give the right to write, and run the same command again: {wish.command} --yes",
                ) from None
        for project in projects.values():
            if project.spec.metastore is not None:
                with _events(plan.move, project) as events:
                    follow_stored(project, events)
    return plan


def end_left_over(wish: Wish) -> None:
    """Open the target of a request that is refused, where an earlier run was killed when the target alone knew of it.

    Raises:
        UpdateInProgress, LeaseLost: as of ``move_table``; nothing was changed.
    """
    with ExitStack() as stack:
        for project in (wish.target, wish.source):
            stack.enter_context(project.lease(f"move-{uuid.uuid4()}", moving=True))
        journal = read_journal(wish.target.state_folder)
        if journal.record is not None and is_left_over(wish):
            end_guarded(journal, journal.record.move_id)


def steps(plan: MovePlan, wish: Wish, check: Step) -> Iterator[Step]:
    """The steps, in their order; each may be done twice. ``check``: raises where a lease is lost, for steps of many writes."""
    move = plan.move
    if plan.is_moved:
        yield lambda: end_journal(move, wish.target.state_folder)
        return
    if not plan.resumed:
        yield lambda: _copy(move, wish.source.state_folder, check)
    yield lambda: write_journals(move, plan.journals)
    yield lambda: _keep_names(move, wish.target.state_folder)
    for before, after in move.folders:
        yield lambda before=before, after=after: _rename(wish.place(before), wish.place(after), check)  # type: ignore[misc]
    yield lambda: _forget(move, wish.source.state_folder)
    yield lambda: mark_old_name(move, wish.source.state_folder, check)
    yield lambda: rewrite_manifests(move, wish, check)
    yield lambda: _record(move, wish.target, resumed=plan.resumed)
    if not move.within:
        yield lambda: _tell(move, wish.source, resumed=plan.resumed)
    # The source's first: where the target's is left, the same command ends it.
    for folder in reversed(wish.states):
        yield lambda folder=folder: end_journal(move, folder)  # type: ignore[misc]


def _taken(wish: Wish, error: FileExistsError) -> NameTaken:
    """As of a table of another pipeline on the same roots, to which this move's journal says nothing."""
    return NameTaken(
        f"The table {wish.dataset!r} is half-way, and something has come to its new place since the move was planned.",
        where=error.filename,
        remedy="It stays as it is. Give it another name first (headwater rename, in the pipeline whose table it is), or put it elsewhere; "
        f"then run the same command again: {wish.command} --yes",
    )


def _copy(move: TableMove, state: Place, check: Step) -> None:
    for checkpoint in flow_folders(state, move.source.dataset):
        take_snapshot(state, checkpoint, reason=f"{BEFORE}it became {move.target.dataset}", check=check)


def _keep_names(move: TableMove, state: Place) -> None:
    own = {f"{move.target.dataset}/{flow}" for flow in move.flows.values()}
    seen = read_names(state)
    others = {key: names for key, names in (seen.record or {}).items() if key not in own}
    identities = {f"{move.target.dataset}/{flow}": FlowIdentity(*names) for flow, names in move.names.items()}
    if identities or seen.record is not None:
        write_guarded(seen, as_text({**others, **identities}))
    forget_mark(move, state)


def _rename(before: Place, after: Place, check: Step) -> None:
    if isinstance(before, ObjectPath) and isinstance(after, ObjectPath):
        carry_over(before, after, check)
        return
    before, after = local_only(before, "This rename"), local_only(after, "This rename")
    if not before.exists():
        return  # an earlier run has done it
    make_folders(after.parent)
    # Not on top of anything: what is there came after the plan, and is not ours to remove.
    if after.exists():
        raise FileExistsError(17, "something is in its place already", str(after))
    before.rename(after)
    sync_folder(after.parent)
    sync_folder(before.parent)


def _forget(move: TableMove, state: Place) -> None:
    """The old name has no former ones any more."""
    old = {f"{move.source.dataset}/{flow}" for flow in move.flows}
    if move.within:
        old -= {f"{move.target.dataset}/{flow}" for flow in move.flows.values()}
    seen = read_names(state)
    names = seen.record or {}
    if old & set(names):
        write_guarded(seen, as_text({k: v for k, v in names.items() if k not in old}))
    for root in ("checkpoints", "snapshots"):
        folder = state / root / move.source.dataset
        if isinstance(folder, Path) and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def _record(move: TableMove, project: PipelineProject, *, resumed: bool) -> None:
    """Record the move, and the last batch of each flow: records under the old name are no longer the flow's."""
    if resumed and has_user_action(project.state_folder, move.move_id):
        return  # the last that is recorded
    recorded = last_batches(project.state_folder)
    with _events(move, project) as events:
        for flow, (epoch, batch, ends) in move.last_batches.items():
            events.set_known_batches(flow, epoch, recorded.get((flow, epoch)))
            events.emit(
                "flow_progress",
                f"Batch {batch} of {flow} is the last that was recorded of {move.source.dataset}, as the table was called.",
                level="METRICS",
                flow=flow,
                dataset=move.target.dataset,
                batch_id=batch,
                epoch=epoch,
                details=flow_progress(FlowStatus.RUNNING, end_offsets=ends),
            )
        _emit(move, events, move.target.dataset)


def _tell(move: TableMove, project: PipelineProject, *, resumed: bool) -> None:
    if resumed and has_user_action(project.state_folder, move.move_id):
        return
    with _events(move, project) as events:
        _emit(move, events, move.source.dataset)


def _events(move: TableMove, project: PipelineProject) -> EventLogWriter:
    return EventLogWriter(project.state_folder, project.pipeline_id, project.spec.name, move.move_id)


def _emit(move: TableMove, events: EventLogWriter, dataset: str) -> None:
    place = "" if move.within else f" of the pipeline {move.target.pipeline}"
    events.emit(
        "user_action",
        f"The table {move.source.dataset} became {move.target.dataset}{place}.",
        level="WARN",
        dataset=dataset,
        details={
            "user_action": {
                "action": "RENAME" if move.within else "MOVE",
                "from": {"pipeline": move.source.pipeline, "dataset": move.source.dataset},
                "to": {"pipeline": move.target.pipeline, "dataset": move.target.dataset},
                "flows": dict(move.flows),
                "folders": [list(pair) for pair in move.folders],
            }
        },
    )
