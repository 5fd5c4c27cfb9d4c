"""What is due in a pipeline: every chore looked at, table by table; nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from headwater.checkpoints.layout import change_memory
from headwater.delta_log.table_history import table_exists
from headwater.event_log.redaction import quoted
from headwater.graph.manifest import DatasetEntry, Manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.spelled_names import known_name
from headwater.graph.table_owners import refuse_foreign_tables
from headwater.maintenance.chore import Chore, ChoreKind, Engine, LeftOut, MaintenanceOptions, Step
from headwater.maintenance.file_layout import Optimize
from headwater.maintenance.storage_cleaning import EventLogCleaning, StorageCleaning
from headwater.maintenance.table_log import LogCheckpoint
from headwater.maintenance.vacuuming import Vacuum
from headwater.quarantine.location import quarantine_location
from headwater.storage.place import located
from headwater.storage.walking import in_order


@dataclass(frozen=True)
class MaintenancePlan:
    """What would be done, what would not and why, and what could not even be looked at."""

    steps: tuple[Step, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The plan as JSON values."""
        return {
            "steps": [step.as_dict() for step in self.steps],
            "left_out": [remark.as_dict() for remark in self.left_out],
        }

    @property
    def is_due(self) -> bool:
        """Whether there is something to do, or something that has to be looked at again to know."""
        return bool(self.steps) or any(remark.unknown for remark in self.left_out)

    @property
    def for_spark(self) -> list[Step]:
        """The steps that need a Spark driver."""
        return [step for step in self.steps if step.engine is Engine.SPARK]


def chores(project: PipelineProject, manifest: Manifest, options: MaintenanceOptions) -> list[Chore]:
    """The chores of a pipeline, table after table, then those of its storage.

    Raises:
        UnknownDataset: where a table is named that the pipeline does not have.
        TableOwned: where another pipeline fills one; only its owner knows how long its files are needed.
    """
    known = [entry.name for entry in manifest.tables]
    chosen = tuple(dict.fromkeys(known_name(manifest, name, known, "table") for name in options.tables))
    refuse_foreign_tables(project, manifest, chosen or None)
    tables = [entry for entry in manifest.tables if not chosen or entry.name in chosen]
    due = [chore for entry in tables for chore in _of_table(project, manifest, entry, options)]
    if not chosen:
        due += _of_storage(project, options)
    return [chore for chore in due if options.wants(chore.kind)]


def look(all_chores: Sequence[Chore]) -> MaintenancePlan:
    """Plan each chore; one that fails is left out with its error."""
    steps: list[Step] = []
    left_out: list[LeftOut] = []
    for chore in all_chores:
        try:
            finding = chore.look()
        except Exception as error:
            # delta-rs adds the frames of its own code, line by line.
            reason = quoted(error).partition("\n")[0].rstrip()
            finding = LeftOut(chore.kind, chore.subject, f"It can't be looked at: {reason}", unknown=True)
        if isinstance(finding, Step):
            steps.append(finding)
        elif finding is not None:
            left_out.append(finding)
    return MaintenancePlan(tuple(steps), tuple(left_out))


def _of_table(
    project: PipelineProject, manifest: Manifest, entry: DatasetEntry, options: MaintenanceOptions
) -> Iterator[Chore]:
    retention = options.retention if options.retention is not None else project.spec.maintenance.retention
    places = [(entry.name, located(project.warehouse, entry.location) if entry.location else None)]
    kept_out = quarantine_location(manifest, project.warehouse, entry.name)
    places.append((f"{entry.name} (quarantine)", kept_out))
    for subject, table in places:
        if table is not None and table_exists(table):
            yield Optimize(subject, table, entry.table_properties if table == places[0][1] else {})
            yield LogCheckpoint(project, subject, table)
            yield Vacuum(project, subject, table, retention)
    for memory in in_order(change_memory(project.state_folder, entry.name).glob("*/_delta_log")):
        # AUTO CDC compacts it by itself, where a batch can't be in between.
        subject = f"{entry.name} (AUTO CDC)"
        yield LogCheckpoint(project, subject, memory.parent)
        yield Vacuum(project, subject, memory.parent, retention, may_go_back=True)


def _of_storage(project: PipelineProject, options: MaintenanceOptions) -> list[Chore]:
    keep = options.keep if options.keep is not None else project.spec.maintenance.keep
    kinds = (ChoreKind.EPOCHS, ChoreKind.SNAPSHOTS, ChoreKind.ORPHANS)
    return [EventLogCleaning(project), *(StorageCleaning(project, kind, keep) for kind in kinds)]
