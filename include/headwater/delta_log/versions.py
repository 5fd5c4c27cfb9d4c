"""Heads and commits of Delta tables, read from the table's log.

Decision 0217.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
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
from headwater.delta_log.heads import LogHead, log_head
from headwater.delta_log.listed_files import listed_files
from headwater.errors import SourceUnreachable
from headwater.storage.delta_tables import copy_of_commit, delta_table, log_here, table_log
from headwater.storage.place import Place

# The search for the last change of data ends this many commits back from the head: it would cost more than it is worth.
_MAX_STEPS_BACK = 1000
# Commits of few files: a look that comes again and again would read and parse each unread one every time.
_REMEMBERED_BYTES = 16 * 1024
_MOST_REMEMBERED = 20_000
_FIRST_NUMBER = re.compile(r'\{"numRecords":(\d+)[,}]')


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
    log = log_here(table)
    head = log_head(log, lambda: _opened_head(table)) if log is not None else _opened_head(table)
    return None if head is None else TableHead(head.table_id, head.version)


def _opened_head(table: Place) -> LogHead | None:
    """As ``table_head``, by delta-rs."""
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
    protocol = opened.protocol()
    needs = {"minReaderVersion": protocol.min_reader_version, "readerFeatures": protocol.reader_features}
    return LogHead(str(opened.metadata().id), opened.version(), needs)


def read_commit(table: Place, version: int) -> Commit | None:
    """A version's commit, or None where its file is gone (logs are cleaned after a time) or not there yet.

    Raises:
        SourceUnreachable: if it is damaged or may not be read.
    """
    file = copy_of_commit(commit_file(table, version))
    try:
        if isinstance(file, Path):
            state = file.stat()
            if state.st_size <= _REMEMBERED_BYTES:
                return _remembered_commit(file, version, (state.st_ino, state.st_size, state.st_mtime_ns))
        return _commit(file, version)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise SourceUnreachable(
            f"The commit can't be read: {error}", where=commit_file(table, version)
        ) from None


@lru_cache(maxsize=_MOST_REMEMBERED)
def _remembered_commit(file: Path, version: int, _: tuple[int, int, int]) -> Commit:
    """As ``_commit``; a commit is read once in a process, as long as its file is the same by number, size and time of change."""
    return _commit(file, version)


def _commit(file: Place, version: int) -> Commit:
    actions = read_actions(file)
    added = tuple([_added(action) for action in data_files(actions, "add")])
    removes = bool(data_files(actions, "remove"))
    info = commit_info(actions)
    seconds, written = commit_seconds(info, file), written_at(info)
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
    return AddedFile(int(action.get("size", 0)), _records(action.get("stats")))


def _records(stats: str | None) -> int | None:
    """The number of rows that a file's statistics name; all writers name it first, and what follows may be long."""
    if not stats:
        return None
    first = _FIRST_NUMBER.match(stats)
    if first is not None:
        return int(first[1])
    records: int | None = json.loads(stats).get("numRecords")
    return records
