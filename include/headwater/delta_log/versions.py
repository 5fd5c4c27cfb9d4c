"""Heads and commits of Delta tables, read from the table's log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from headwater.delta_log.commits import (
    commit_file,
    commit_info,
    commit_seconds,
    data_files,
    log_folder,
    read_actions,
    written_at,
)
from headwater.delta_log.conditions import log_unreadable
from headwater.delta_log.listed_files import listed_files
from headwater.errors import SourceUnreachable
from headwater.storage.delta_tables import delta_table, table_log
from headwater.storage.place import Place

# The search for the last change of data ends this many commits back from the head: it would cost more than it is worth.
_MAX_STEPS_BACK = 1000


@dataclass(frozen=True)
class TableHead:
    """Which table it is (Delta's id changes when a table is recreated) and its newest version."""

    table_id: str
    version: int


@dataclass(frozen=True)
class AddedFile:
    """A file that a commit added. ``records`` is None where its statistics do not say."""

    bytes: int
    records: int | None


@dataclass(frozen=True)
class Commit:
    """What a version did. Files that only moved rows (optimize) are left out.

    ``timestamp``: seconds since 1970; ``written``: the commit's own word for it in milliseconds, None where it has none.
    """

    version: int
    timestamp: float
    added: tuple[AddedFile, ...]
    removes_data: bool
    changes_metadata: bool
    written: int | None = None

    @property
    def changes_data(self) -> bool:
        """Whether rows came or went."""
        return bool(self.added) or self.removes_data


def table_head(table: Place) -> TableHead | None:
    """The head of the table at ``table``, None where there is none; raises SourceUnreachable if it is damaged."""
    try:
        if not log_folder(table).is_dir():
            return None
    except OSError as error:
        raise SourceUnreachable(f"The log of the Delta table can't be read: {error}", where=table) from None
    from deltalake.exceptions import DeltaError, TableNotFoundError

    try:
        opened = table_log(table)
    except TableNotFoundError:
        return None
    except (DeltaError, OSError) as error:
        raise log_unreadable(error, table) from None
    return TableHead(str(opened.metadata().id), opened.version())


def read_commit(table: Place, version: int) -> Commit | None:
    """A version's commit, or None where its file is gone (logs are cleaned after a time) or not there yet.

    Raises:
        SourceUnreachable: if it is damaged or may not be read.
    """
    file = commit_file(table, version)
    try:
        actions = read_actions(file)
        info = commit_info(actions)
        seconds, written = commit_seconds(info, file), written_at(info)
        added = tuple(map(_added, data_files(actions, "add")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise SourceUnreachable(f"The commit can't be read: {error}", where=file) from None
    removes = bool(data_files(actions, "remove"))
    metadata = any("metaData" in action for action in actions)
    return Commit(version, seconds, added, removes, metadata, written)


def last_change(table: Place, head: int, *, metadata_too: bool = False) -> Commit | None:
    """The newest commit that changed data (or the schema or properties, if asked), None where the log is gone."""
    for commit in _backwards(table, head):
        if commit.changes_data or (metadata_too and commit.changes_metadata):
            return commit
    return None


def snapshot_files(table: Place, version: int | None = None) -> list[AddedFile]:
    """The files of a version (the head if None), in the order in which a stream's first read takes them.

    Raises:
        SourceUnreachable: if the version can't be opened (any more).
    """
    from deltalake.exceptions import DeltaError

    try:
        rows = listed_files(delta_table(table, version=version))
    except (DeltaError, OSError) as error:
        raise SourceUnreachable(
            f"The files of the Delta table can't be listed: {error}", where=table
        ) from None
    rows.sort(key=lambda row: (row["modification_time"], row["path"]))
    return [AddedFile(int(row["size_bytes"]), row.get("num_records")) for row in rows]


def rows_of_table(table: Place) -> int | None:
    """How many rows the files of the newest version have, including those that are only marked as deleted; None where it is not known."""
    try:
        records = [file.records for file in snapshot_files(table)]
    except SourceUnreachable:
        return None  # only opening the table would say
    return None if None in records else sum(number or 0 for number in records)


def _backwards(table: Place, head: int) -> Iterator[Commit]:
    for version in range(head, max(-1, head - _MAX_STEPS_BACK), -1):
        commit = read_commit(table, version)
        if commit is None:
            return
        yield commit


def _added(action: dict[str, Any]) -> AddedFile:
    stats = action.get("stats")
    records = json.loads(stats).get("numRecords") if stats else None
    return AddedFile(int(action.get("size", 0)), records)
