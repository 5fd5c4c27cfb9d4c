"""Dropping a table, with its rows, its checkpoints, and what is stored beside it.

Decision 0191.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from headwater.checkpoints.table_move import moved_to
from headwater.definitions.dataset import DatasetKind, quarantine_folder
from headwater.definitions.names import is_dotted_name
from headwater.delta_log.commits import log_folder
from headwater.delta_log.table_history import table_exists
from headwater.delta_log.versions import rows_of_table
from headwater.doctor.begun_actions import record_begun
from headwater.doctor.removal import remove_flow
from headwater.doctor.repair_plan import NOTHING
from headwater.errors import RefusedForSafety, ResetNotAllowed, UnknownDataset
from headwater.event_log.user_actions import DROP, is_dropped
from headwater.event_log.writer import EventLogWriter
from headwater.files.atomic_files import sync_folder
from headwater.graph.manifest import Manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.stored_manifest import replace_manifest, seen_manifest
from headwater.graph.table_owners import refuse_foreign_tables
from headwater.graph.table_places import refuse_around_tables
from headwater.metastore.following import follow_stored
from headwater.quarantine.table import is_quarantine
from headwater.storage.place import Place
from headwater.storage.walking import in_order, remove_tree
from headwater.suggestions import did_you_mean, nearest


@dataclass(frozen=True)
class DropPlan:
    """The folders that go, in this order: a crash between two is refused by the next update, and ended by another drop.

    ``lost``: the rows that go with them, in words.
    """

    dataset: str
    folders: tuple[Place, ...]
    lost: str = NOTHING

    def __str__(self) -> str:
        lines = [f"  {number}. remove {folder}" for number, folder in enumerate(self.folders, start=1)]
        lines += [f"  lost: {self.lost}"] if lines else []
        return "\n".join([f"drop of {self.dataset}:", *(lines or ["  there is nothing to remove"])])


def plan_drop(
    project: PipelineProject, manifest: Manifest | None, dataset: str, others: Sequence[str] = ()
) -> DropPlan:
    """What a drop would remove; changes nothing. Also of tables that the sources no longer define.

    Args:
        project: the pipeline.
        manifest: its resolved graph, None where it was never resolved.
        dataset: the table's name, as ``status`` shows it.
        others: tables that are dropped with it.

    Raises:
        UnknownDataset: where neither the graph nor storage knows the table.
        ResetNotAllowed: where its ``pipelines.reset.allowed`` is false.
        RefusedForSafety: where a stream that stays reads it, or another pipeline fills it, or another table lies inside it.
    """
    entry = next((item for item in manifest.datasets if item.name == dataset), None) if manifest else None
    checkpoints = project.state_folder / "checkpoints" / dataset
    # A name that is a path elsewhere, or the folder of all checkpoints, is invalid.
    if entry is None and (not is_dotted_name(dataset) or not checkpoints.is_dir()):
        raise _unknown(project, manifest, dataset)
    folders = []
    if moved_to(project.state_folder, dataset) is not None:
        # The table has another name now; only what is left at the old one goes.
        return DropPlan(dataset, (checkpoints,))
    if entry is not None and manifest is not None:
        if entry.table_properties.get("pipelines.reset.allowed", "true").lower() == "false":
            raise ResetNotAllowed(
                f"The table {dataset!r} must not be dropped: its property pipelines.reset.allowed is false.",
                where=entry.defined_at,
                remedy="Remove the property, if you mean it.",
            )
        _check_readers(manifest, dataset, others)
        refuse_foreign_tables(project, manifest, [dataset])
        if entry.location is not None and entry.kind is not DatasetKind.SINK:
            table = manifest.table_path(project.warehouse, dataset)
            folders.append(table)
            kept_out = table.with_name(quarantine_folder(table.name))
            # A recreated table reads these rows again: a replay would add them twice.
            folders += [kept_out] if is_quarantine(kept_out) or _is_half_gone(kept_out) else []
            for folder in folders:
                refuse_around_tables(folder)
    # The checkpoints last: of a table that the sources no longer define, only they say that there is something to drop.
    folders += [
        project.state_folder / "snapshots" / dataset,
        project.state_folder / "system" / "auto_cdc" / dataset,
        checkpoints,
    ]
    there = tuple(folder for folder in folders if folder.exists())
    return DropPlan(dataset, there, _lost(folders[:-3]))


def _unknown(project: PipelineProject, manifest: Manifest | None, dataset: str) -> UnknownDataset:
    names = [entry.name for entry in manifest.tables] if manifest is not None else []
    return UnknownDataset(
        f"The pipeline has no table {dataset!a}, and storage has no checkpoint of one.",
        where=project.state_folder,
        remedy=did_you_mean(
            nearest(dataset, names), "`headwater checkpoints PIPELINE_DIR` lists what storage has."
        ),
    )


def _lost(tables: Sequence[Place]) -> str:
    """The rows of a table and of its quarantine; what the sources still hold can be read again."""
    counts = {table: rows_of_table(table) for table in tables if table_exists(table)}
    if not counts:
        return NOTHING
    if None in counts.values():
        return "all rows of the table; how many can't be known"
    kept_out = next((rows for folder, rows in counts.items() if folder != tables[0]), None)
    if tables[0] not in counts:  # a drop that was killed has left the quarantine alone
        return f"{kept_out} rows that its rules kept out"
    more = "" if kept_out is None else f", and {kept_out} that its rules kept out"
    return f"{counts[tables[0]]} rows of the table{more}"


def drop(
    project: PipelineProject, plans: Sequence[DropPlan], plan_again: Callable[[], Sequence[DropPlan]]
) -> None:
    """Carry plans out, under the lease, and record them.

    Args:
        project: the pipeline.
        plans: what was shown.
        plan_again: what would be removed now.

    Raises:
        UpdateInProgress: an update runs; nothing was removed.
        RefusedForSafety: one has run since it was planned, and more, or other rows, would go; nothing was removed.
        LeaseLost: this process stood still for so long that another one may write; the same drop ends it.
    """
    drop_id = str(uuid.uuid4())
    with (
        project.lease(f"drop-{drop_id}") as lease,
        EventLogWriter(project.state_folder, project.pipeline_id, project.spec.name, drop_id) as events,
    ):
        _refuse_outdated(project, plans, plan_again())
        record_begun(project)
        seen, manifest = seen_manifest(project.state_folder)
        for plan in plans:
            for folder in plan.folders:
                _remove(folder, lease.check)
            lease.check()
            if not plan.folders and is_dropped(project.state_folder, plan.dataset):
                continue  # by an earlier try, which recorded it
            events.emit(
                "user_action",
                f"The table {plan.dataset} was dropped.",
                level="WARN",
                dataset=plan.dataset,
                details={
                    "user_action": {"action": DROP, "folders": [str(folder) for folder in plan.folders]}
                },
            )
        if manifest is not None:
            # Last: until its checkpoints have gone, too, a table is this pipeline's, and another run of this ends it.
            dropped = dict.fromkeys((*manifest.dropped, *(plan.dataset for plan in plans)))
            replace_manifest(seen, manifest.model_copy(update={"dropped": tuple(dropped)}), lease.check)
        follow_stored(project, events)


def _remove(folder: Place, check: Callable[[], None]) -> None:
    """Remove a folder, so that what a kill leaves of it is no table of before.

    Of a table the log goes first: on a disk at once, since its files go in any order, and all but the last are a table of an earlier
    version. Flows go as ``remove_flow`` says.

    ``check``: raises where the lease is lost; what is there then may be another update's.
    """
    log = log_folder(folder)
    check()
    if log.is_dir():
        remove_tree(_hidden(log), check=check)
    check()
    if isinstance(folder, Path):
        for flow in in_order(folder.glob("*/")):
            if not flow.is_symlink():
                remove_flow(flow, check)
    check()
    remove_tree(folder, check=check)


def _is_half_gone(table: Place) -> bool:
    """Whether this is what a drop that was killed has left of a table on a disk."""
    return isinstance(table, Path) and any(table.glob(f".{log_folder(table).name}.*"))


def _hidden(log: Place) -> Place:
    """The log of a table on a disk under a name by which nobody reads it; on a store it is removed from its beginning on."""
    if not isinstance(log, Path):
        return log
    hidden = log.rename(log.with_name(f".{log.name}.{secrets.token_hex(6)}"))
    sync_folder(log.parent)
    return hidden


def _refuse_outdated(project: PipelineProject, plans: Sequence[DropPlan], now: Sequence[DropPlan]) -> None:
    if list(plans) != list(now):
        raise RefusedForSafety(
            f"{', '.join(plan.dataset for plan in plans)}: what would be removed has changed since this drop was planned.",
            where=project.state_folder,
            remedy="Nothing was removed. Look at the plan of now, and carry that one out: run the same command again.",
        )


def _check_readers(manifest: Manifest, dataset: str, others: Sequence[str]) -> None:
    readers = sorted(_readers(manifest, dataset) - {dataset, *others})
    if readers:
        dropped = list(dict.fromkeys([dataset, *others]))
        for name in dropped:  # it grows
            dropped += sorted(_readers(manifest, name) - {*dropped})
        raise RefusedForSafety(
            f"Streams into {', '.join(readers)} read {dataset!r} and could not go on without it.",
            remedy=f"Drop everything that depends on it: headwater drop PIPELINE_DIR {' '.join(dropped)}; "
            "or take the table out of their sources first.",
        )


def _readers(manifest: Manifest, dataset: str) -> set[str]:
    """The tables and sinks whose streams read a dataset, themselves or through views; it may be among them."""
    stored = {entry.name for entry in manifest.outputs}
    readers: set[str] = set()
    looked_at = [dataset]
    for name in looked_at:  # it grows
        for flow in manifest.flows:
            if not any(source.name == name and source.streaming for source in flow.sources):
                continue
            if flow.target in stored:
                readers.add(flow.target)
            elif flow.target not in looked_at:
                looked_at.append(flow.target)
    return readers
