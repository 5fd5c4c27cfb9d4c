"""Carrying out a rename or a move of a table: every step is one rename or one file, and can be repeated.

The order is: copies of the checkpoints; the journal, from which on nobody else writes; the names that commits go on to
carry; the folders; the mark at the old name; what is recorded. A crash between any two is ended by the same command.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

from headwater.checkpoints.flow_identity import FlowIdentity, as_text, former_names, names_file
from headwater.checkpoints.table_move import TableMove, mark_file, mark_old_name, write_journals
from headwater.doctor.snapshots import take_snapshot
from headwater.errors import StorageFailed
from headwater.event_log.details import FlowStatus, flow_progress
from headwater.event_log.reader import last_batches
from headwater.event_log.writer import EventLogWriter
from headwater.files.atomic_files import sync_folder, write_atomically
from headwater.graph.pipeline_project import PipelineProject
from headwater.metastore.following import follow_stored
from headwater.moves.move_plan import MovePlan, Wish, flow_folders, plan_move
from headwater.moves.moved_manifest import rewrite_manifests

Step = Callable[[], None]


def move_table(wish: Wish) -> MovePlan:
    """Carry a request out, or finish what an earlier run of it began.

    Raises:
        UpdateInProgress: where an update of one of the pipelines runs; nothing was changed.
        StorageFailed: where a folder can't be renamed; the same command goes on from there.
        All that ``plan_move`` raises; nothing was changed.
    """
    projects = {project.state_folder: project for project in (wish.target, wish.source)}
    with ExitStack() as stack:
        for project in projects.values():
            stack.enter_context(project.lease(f"move-{uuid.uuid4()}", moving=True))
        # Only now nothing moves any more.
        plan = plan_move(wish)
        for step in steps(plan, wish):
            try:
                step()
            except OSError as error:
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


def steps(plan: MovePlan, wish: Wish) -> Iterator[Step]:
    """The steps, in their order; each may be done twice."""
    move = plan.move
    if not plan.resumed:
        yield lambda: _copy(move)
        yield lambda: write_journals(move)
    yield lambda: _keep_names(move)
    for before, after in move.folders:
        yield lambda before=before, after=after: _rename(Path(before), Path(after))  # type: ignore[misc]
    yield lambda: _forget(move)
    yield lambda: mark_old_name(move)
    yield lambda: rewrite_manifests(move, wish)
    yield lambda: _record(move, wish.target)
    if not move.within:
        yield lambda: _tell(move, wish.source)
    # The source's first: where the target's is left, the same command ends it.
    for journal in reversed(move.journals):
        yield lambda journal=journal: journal.unlink(missing_ok=True)  # type: ignore[misc]


def _copy(move: TableMove) -> None:
    state = Path(move.source.state_folder)
    for checkpoint in flow_folders(state, move.source.dataset):
        take_snapshot(state, checkpoint, reason=f"before it became {move.target.dataset}")


def _keep_names(move: TableMove) -> None:
    state = Path(move.target.state_folder)
    own = {f"{move.target.dataset}/{flow}" for flow in move.flows.values()}
    others = {key: names for key, names in former_names(state).items() if key not in own}
    identities = {f"{move.target.dataset}/{flow}": FlowIdentity(*names) for flow, names in move.names.items()}
    if identities or others or names_file(state).exists():
        write_atomically(names_file(state), as_text({**others, **identities}))
    mark_file(state, move.target.dataset).unlink(missing_ok=True)


def _rename(before: Path, after: Path) -> None:
    if not before.exists():
        return  # an earlier run has done it
    after.parent.mkdir(parents=True, exist_ok=True)
    # Not on top of anything: what is there came after the plan, and is not ours to remove.
    if after.exists():
        raise FileExistsError(17, "something is in its place already", str(after))
    before.rename(after)
    sync_folder(after.parent)
    sync_folder(before.parent)


def _forget(move: TableMove) -> None:
    """The old name has no former ones any more."""
    state = Path(move.source.state_folder)
    old = {f"{move.source.dataset}/{flow}" for flow in move.flows}
    if move.within:
        old -= {f"{move.target.dataset}/{flow}" for flow in move.flows.values()}
    names = former_names(state)
    if old & set(names):
        write_atomically(names_file(state), as_text({k: v for k, v in names.items() if k not in old}))
    for root in ("checkpoints", "snapshots"):
        folder = state / root / move.source.dataset
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def _record(move: TableMove, project: PipelineProject) -> None:
    """Record the move, and the last batch of each flow: records under the old name are no longer the flow's."""
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


def _tell(move: TableMove, project: PipelineProject) -> None:
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
