"""What storage no longer needs: old epochs, old copies of checkpoints, leftovers of removed flows, old events.

Nothing of it is touched while the last update has failed or the graph is not known: then it may be what a repair needs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from headwater.checkpoints.layout import FlowCheckpoint
from headwater.doctor.removal import remove_flow
from headwater.doctor.snapshots import remove_snapshot, snapshots_of
from headwater.errors import HeadwaterError
from headwater.event_log.details import UpdateState
from headwater.event_log.event import event_table
from headwater.event_log.reader import latest_update
from headwater.event_log.retention import expired_records, maintain_event_log
from headwater.graph.manifest import FILE_NAME, Manifest, read_manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater.maintenance.chore import ChoreKind, Finding, LeftOut, Rewriter, Step
from headwater.storage.delta_tables import delta_table
from headwater.storage.listing import looked_over
from headwater.storage.object_path import ObjectPath
from headwater.storage.place import Place, parts_below
from headwater.storage.walking import files_below, in_order, remove_tree


@dataclass(frozen=True)
class StorageCleaning:
    """One kind of leftovers. ``keep``: how long it stays, counted from the last change of any file of it."""

    project: PipelineProject
    kind: ChoreKind
    keep: timedelta
    now: Callable[[], float] = time.time

    @property
    def subject(self) -> str:
        """The storage, not a table."""
        return "storage"

    def look(self) -> Finding:
        """Say which folders would go."""
        with looked_over(self.project.state_folder):
            folders = list(self._folders())
        if not folders:
            return None
        why_not = unsettled(self.project)
        if why_not:
            return LeftOut(self.kind, self.subject, f"{len(folders)} folders stay: {why_not}")
        files = [file for folder in folders for file in _below(folder)]
        shown = ", ".join("/".join(parts_below(folder, self.project.state_folder)) for folder in folders[:5])
        what = f"remove {shown}" + (f" and {len(folders) - 5} more" if len(folders) > 5 else "")
        return Step(self.kind, self.subject, what, len(files), sum(size for _, size, _ in files))

    def carry_out(self, step: Step, rewrite: Rewriter | None) -> str:  # noqa: ARG002 - the form of Chore
        """Remove them."""
        with looked_over(self.project.state_folder):
            folders = list(self._folders())
        ways: dict[ChoreKind, Callable[[Place], None]] = {
            ChoreKind.SNAPSHOTS: remove_snapshot,
            ChoreKind.ORPHANS: remove_flow,
        }
        remove = ways.get(self.kind, remove_tree)
        for folder in folders:
            remove(folder)
        return f"{len(folders)} folders removed"

    def _folders(self) -> Iterator[Place]:
        finders = {
            ChoreKind.EPOCHS: old_epochs,
            ChoreKind.SNAPSHOTS: old_snapshots,
            ChoreKind.ORPHANS: orphans,
        }
        before = self.now() - self.keep.total_seconds()
        yield from (folder for folder in finders[self.kind](self.project) if _newest(folder) < before)


def unsettled(project: PipelineProject) -> str | None:
    """Why nothing in storage may be removed now; None where it may."""
    update = latest_update(project.state_folder)
    if update is None or update.state != UpdateState.COMPLETED:
        return "the last update did not complete, and what it left may be needed to repair it."
    manifest = _manifest(project)
    if manifest is None or not manifest.fits(project):
        return "the sources have changed since the last update."
    return None


def old_epochs(project: PipelineProject) -> Iterator[Place]:
    """Epochs before the live one, and what killed repairs have left of theirs; not the ones that a reset is about to begin."""
    for checkpoint in _checkpoints(project):
        try:
            state = checkpoint.read_state()
        except HeadwaterError:
            continue
        if state is not None and state.pending_epoch is None and state.completed:
            yield from (checkpoint.epoch_folder(e) for e in checkpoint.epochs_begun() if e < state.epoch)
            yield from checkpoint.epochs_given_up()


def old_snapshots(project: PipelineProject) -> Iterator[Place]:
    """Copies of checkpoints, except the newest of each flow and the newest that no repair made of what it met; and what interrupted
    copies have left.
    """
    root = project.state_folder / "snapshots"
    for flow in in_order(root.glob("*/*/")):
        snapshots = snapshots_of(project.state_folder, flow.parent.name, flow.name)
        of_users = [snapshot for snapshot in snapshots if not snapshot.of_repair]
        kept = {snapshot.name for snapshot in (*snapshots[-1:], *of_users[-1:])}
        yield from (snapshot.folder for snapshot in snapshots if snapshot.name not in kept)
        # Under a hidden name on a disk, beside a mark on a store.
        whole = {snapshot.name for snapshot in snapshots}
        yield from (f for f in in_order(flow.glob("*/")) if f.is_dir() and f.name not in whole)


def orphans(project: PipelineProject) -> Iterator[Place]:
    """Checkpoints and copies of flows that the graph no longer has, and folders of their tables in which nothing is left on a disk."""
    manifest = _manifest(project)
    if manifest is None:
        return
    in_graph = {(flow.target, flow.name) for flow in manifest.flows}
    tables = {flow.target for flow in manifest.flows}
    for name in ("checkpoints", "snapshots"):
        root = project.state_folder / name
        for flow in in_order(root.glob("*/*/")):
            if (flow.parent.name, flow.name) not in in_graph:
                yield flow
        if isinstance(root, Path):
            folders = (folder for folder in in_order(root.glob("*/")) if folder.name not in tables)
            yield from (folder for folder in folders if not any(folder.iterdir()))


@dataclass(frozen=True)
class EventLogCleaning:
    """The event log's retention, its files and its own log."""

    project: PipelineProject
    kind: ChoreKind = ChoreKind.EVENT_LOG

    @property
    def subject(self) -> str:
        """The log, not a table of the pipeline."""
        return "event log"

    def look(self) -> Finding:
        """Count what is older than ``event_log.retention_days``."""
        state = self.project.state_folder
        if not (event_table(state) / "_delta_log").is_dir():
            return None
        days = self.project.spec.event_log.retention_days
        rows = expired_records(state, days)
        expiry = "no records are removed" if not rows else f"remove records older than {days} days"
        files = list(_below(event_table(state)))
        size = sum(size for _, size, _ in files)
        return Step(self.kind, self.subject, f"put its files together; {expiry}", len(files), size, rows)

    def carry_out(self, step: Step, rewrite: Rewriter | None) -> str:  # noqa: ARG002 - the form of Chore
        """Compact, delete, checkpoint, vacuum."""
        state = self.project.state_folder
        delta_table(event_table(state)).optimize.compact()
        done = maintain_event_log(state, self.project.spec.event_log.retention_days)
        return f"{done.deleted} records and {done.removed} files removed"


def _checkpoints(project: PipelineProject) -> list[FlowCheckpoint]:
    return [FlowCheckpoint(path) for path in in_order((project.state_folder / "checkpoints").glob("*/*/"))]


def _manifest(project: PipelineProject) -> Manifest | None:
    try:
        return read_manifest(project.state_folder / FILE_NAME)
    except HeadwaterError as error:
        if error.transient:  # it is there, and the next look may read it
            raise
        return None


def _below(folder: Place) -> Iterator[tuple[Place, int, float]]:
    """Every file with its size and the time of its last change."""
    for file, about in files_below(folder):
        yield file, about.st_size, about.st_mtime


def _newest(folder: Place) -> float:
    times: Sequence[float] = [changed for _, _, changed in _below(folder)]
    if times or not isinstance(folder, ObjectPath):
        return max(times) if times else folder.stat().st_mtime
    return math.inf  # Hadoop's mark of a folder that is gone: there is nothing to remove
