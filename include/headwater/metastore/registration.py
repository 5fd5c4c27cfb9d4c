"""Keeps the entries of a pipeline's tables in step with the tables, after whatever has changed these.

Decision 0196.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from headwater.definitions.dataset_name import DatasetName
from headwater.delta_log.table_history import readable_log
from headwater.errors import HeadwaterError, SourceUnreachable, StorageFailed
from headwater.graph.manifest import DatasetEntry, Manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater.metastore.column_types import hive_columns
from headwater.metastore.conditions import MetastoreNameClash, MetastoreRefused, MetastoreUnreachable
from headwater.metastore.entry import Entry, EntryName, table_of
from headwater.metastore.hive import HiveMetastore, open_metastore, user_name
from headwater.metastore.record import Record, Registered, read_record, write_record
from headwater.metastore.steps import Action, Step, is_ours, name_taken, steps_for
from headwater.metastore.thrift_binary import Struct
from headwater.runtime.secret_values import without_known
from headwater.storage.place import near

if TYPE_CHECKING:
    from deltalake import DeltaTable


@dataclass
class Registration:
    """What was done, and what was not. ``steps``: those that changed something."""

    steps: list[Step] = field(default_factory=list)
    troubles: list[HeadwaterError] = field(default_factory=list)


def is_due(project: PipelineProject) -> bool:
    """Whether entries are left to be registered, though no table has changed: the metastore was away, or is a new one."""
    if project.spec.metastore is None:
        return False
    record = read_record(project.state_folder)
    return record is None or record != replace(_empty(project), pending=False, entries=record.entries)


def register(project: PipelineProject, manifest: Manifest) -> Registration:
    """Bring the entries of all tables up to date; call it under the lease. Nothing is done where the spec has no metastore.

    What does not work is left for the next time, and is in the result: no error of a metastore is one of the data.
    """
    done = Registration()
    spec = project.spec.metastore
    if spec is None:
        return done
    before = read_record(project.state_folder)
    entries = dict(before.entries) if before is not None else {}
    try:
        wanted = list(_entries(project, manifest, done.troubles))
        with open_metastore(spec.addresses) as metastore:
            existing = _existing(metastore, [*(entry.name for entry in wanted), *entries])
            steps, refused = steps_for(wanted, existing, entries, lambda one: _is_there(project, one))
            done.troubles += refused
            for step in steps:
                _carry_out(metastore, step, existing, entries, done)
    except (MetastoreUnreachable, MetastoreRefused, MetastoreNameClash) as error:
        done.troubles.append(error)
    _remember(project, before, replace(_empty(project), pending=bool(done.troubles), entries=entries), done)
    return done


def refuse_foreign_entries(project: PipelineProject, manifest: Manifest) -> None:
    """Raise where a name of the pipeline's tables belongs to somebody else in the metastore; call it before anything is written.

    One that does not answer is passed over: the end of the update says so.

    Raises:
        MetastoreNameTaken: the metastore has a table of that name which this pipeline has not registered.
        MetastoreNameClash: two tables of the pipeline would have one name there.
    """
    spec = project.spec.metastore
    if spec is None:
        return
    tables = named_tables(manifest)
    record = read_record(project.state_folder)
    try:
        with open_metastore(spec.addresses) as metastore:
            existing = _existing(metastore, tables)
    except (MetastoreUnreachable, MetastoreRefused):
        return
    for name, table in existing.items():
        dataset = tables[name].name
        try:
            log = _log(project, manifest, tables[name])
        except HeadwaterError:
            continue  # the checks before a start report it
        own = str(log.metadata().id) if log is not None else None
        if not is_ours(table, own, record.entries.get(name) if record is not None else None):
            raise name_taken(name, dataset)


def refuse_name_clashes(project: PipelineProject, manifest: Manifest) -> None:
    """Raise MetastoreNameClash where two tables would have one name in the spec's metastore."""
    if project.spec.metastore is not None:
        named_tables(manifest)


def named_tables(manifest: Manifest) -> dict[EntryName, DatasetEntry]:
    """The tables that are registered, by their names there; private ones are for their pipeline alone.

    Raises:
        MetastoreNameClash: two of them would have one name.
    """
    tables: dict[EntryName, DatasetEntry] = {}
    for dataset in manifest.tables:
        if dataset.private or dataset.location is None:
            continue
        full = DatasetName.parse(dataset.name, catalog=manifest.catalog, schema=manifest.schema_name)
        name = EntryName.of(full)
        if name in tables:
            raise MetastoreNameClash(
                f"{tables[name].name!r} and {dataset.name!r} would both be {name} in the metastore, which has two parts for a name and no "
                "capital letters.",
                where=dataset.defined_at,
                remedy="Rename one of them, or give it another schema.",
            )
        tables[name] = dataset
    return tables


def _entries(project: PipelineProject, manifest: Manifest, troubles: list[HeadwaterError]) -> Iterable[Entry]:
    for name, dataset in named_tables(manifest).items():
        try:
            log = _log(project, manifest, dataset)
        except HeadwaterError as error:  # of this table alone
            troubles.append(error)
            continue
        if log is None:
            continue
        metadata = log.metadata()
        columns = tuple(
            replace(column, comment=without_known(column.comment))
            for column in hive_columns(json.loads(log.schema().to_json()))
        )
        place = str(manifest.table_path(project.warehouse, dataset.name))
        yield Entry(
            name, dataset.name, project.pipeline_id, str(metadata.id), place, columns,
            without_known(metadata.description or ""), dict(metadata.configuration),
        )  # fmt: skip


def _log(project: PipelineProject, manifest: Manifest, dataset: DatasetEntry) -> DeltaTable | None:
    return readable_log(manifest.table_path(project.warehouse, dataset.name))


def _existing(metastore: HiveMetastore, names: Iterable[EntryName]) -> dict[EntryName, Struct]:
    databases: dict[str, set[str]] = {}
    for name in names:
        databases.setdefault(name.database, set()).add(name.table)
    return {
        EntryName(database, table): known
        for database, tables in sorted(databases.items())
        for table, known in metastore.tables(database, sorted(tables)).items()
    }


def _is_there(project: PipelineProject, registered: Registered) -> bool:
    try:
        log = readable_log(near(project.warehouse, registered.place))
    except SourceUnreachable:
        return True  # not known to be gone
    return log is not None and str(log.metadata().id) == registered.table_id


def _carry_out(
    metastore: HiveMetastore,
    step: Step,
    existing: dict[EntryName, Struct],
    entries: dict[EntryName, Registered],
    done: Registration,
) -> None:
    try:
        if step.entry is None:
            if step.action is Action.DROP:
                metastore.drop(step.name.database, step.name.table)
        else:
            _write(metastore, step, step.entry, existing.get(step.name))
    except MetastoreUnreachable:
        raise
    except HeadwaterError as error:  # of this entry alone
        done.troubles.append(error)
        return
    entries.pop(step.name, None)
    if step.entry is not None:
        entries[step.entry.name] = Registered(step.entry.dataset, step.entry.place, step.entry.table_id)
    if step.action not in (Action.KEEP, Action.FORGET):
        done.steps.append(step)


def _write(metastore: HiveMetastore, step: Step, entry: Entry, before: Struct | None) -> None:
    if step.action is Action.KEEP:
        return
    table = table_of(entry, before, user_name(), int(time.time()))
    if entry.name.database != step.name.database or step.action is Action.CREATE:
        metastore.ensure_database(entry.name.database)
    if before is not None:
        metastore.alter(step.name.database, step.name.table, before, table)
    elif not metastore.create(table):
        raise name_taken(entry.name, entry.dataset)


def _empty(project: PipelineProject) -> Record:
    assert project.spec.metastore is not None
    return Record(project.spec.metastore.uri, str(project.warehouse))


def _remember(project: PipelineProject, before: Record | None, after: Record, done: Registration) -> None:
    if before == after:
        return
    try:
        write_record(project.state_folder, after)
    except StorageFailed as error:
        done.troubles.append(error)
    except OSError as error:
        done.troubles.append(
            StorageFailed(
                f"What was registered can't be noted: {error.strerror or error}.", where=project.state_folder
            )
        )
