"""What changed in a Delta table between two versions, by its log alone: nothing of the table's data is read.

Decision 0163.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote, urlparse

from headwater.delta_log.commits import Action, commit_file, data_files, read_actions
from headwater.incremental.column_shapes import columns_by_name, mapping_of
from headwater.incremental.table_features import adds_harmless_features
from headwater.incremental.techniques import Issue, IssueType
from headwater.storage.delta_tables import delta_table
from headwater.storage.place import Place, of_spark

# More than this, and reading the log costs as much as the view.
MAX_FILE_ACTIONS = 50_000
_CDF = "delta.enableChangeDataFeed"
# Files that came, files that went.
_Files: TypeAlias = tuple[tuple[Action, ...], tuple[Action, ...]]


class ChangeKind(StrEnum):
    """What a range of versions did to the rows."""

    UNCHANGED = "UNCHANGED"
    APPENDED = "APPENDED"
    CHANGED = "CHANGED"


@dataclass(frozen=True)
class SourceChange:
    """What happened to a table after version ``first`` up to ``last``.

    Args:
        added: files (``add`` actions) whose rows came; of a range that only appended, each as it was when it came.
        removed: files (as ``add`` actions) whose rows went, unless ``added`` has them again.
        change_feed: whether each version of the range has a change feed that says it row by row.
    """

    kind: ChangeKind
    first: int
    last: int
    added: tuple[Action, ...] = ()
    removed: tuple[Action, ...] = ()
    change_feed: bool = False

    @property
    def bytes(self) -> int:
        """The size of the files on both sides."""
        return sum(int(file.get("size") or 0) for file in (*self.added, *self.removed))

    @property
    def changed_bytes(self) -> int:
        """How much of the table changed: the size of the files that came, or of those that they replaced, whichever is more."""
        return max(sum(int(file.get("size") or 0) for file in side) for side in (self.added, self.removed))

    @property
    def sizes(self) -> list[tuple[int, int | None]]:
        """Of each file on both sides, its bytes and its rows, None where its statistics don't say."""
        return [(int(file.get("size") or 0), _records(file)) for file in (*self.added, *self.removed)]

    @property
    def rows(self) -> int | None:
        """How many rows those files have, None where their statistics don't say."""
        counts = [_records(file) for file in (*self.added, *self.removed)]
        return None if None in counts else sum(count or 0 for count in counts)


def changes_between(  # noqa: PLR0911 - one return a reason
    table: Place, first: int, last: int, columns: Collection[str], name: str
) -> SourceChange | Issue:
    """What the versions after ``first`` up to ``last`` did to a table, or why that can't be known.

    Args:
        table: the table's folder; it is the same table (by its id) at both versions.
        columns: the columns that matter; that others come, go or change is no reason against.
        name: what to call the table in a reason.
    """
    try:
        commits = [read_actions(commit_file(table, version)) for version in range(first + 1, last + 1)]
    except FileNotFoundError:
        return Issue(
            IssueType.CDF_UNAVAILABLE,
            f"the log of {name} does not reach back to version {first}, where the last refresh stood",
            table=name,
        )
    except (OSError, ValueError) as error:
        return Issue(IssueType.CDF_UNAVAILABLE, f"the log of {name} can't be read: {error}", table=name)
    if sum(map(len, commits)) > MAX_FILE_ACTIONS:
        reason = f"{name} has had more than {MAX_FILE_ACTIONS} changes of files since the last refresh"
        return Issue(IssueType.TOO_MANY_FILE_ACTIONS, reason, table=name)
    issue = _shape_issue(table, first, commits, columns, name)
    if issue is not None:
        return issue
    came = [file for actions in commits for file in data_files(actions, "add")]
    went = any(data_files(actions, "remove") for actions in commits)
    if not came and not went:
        return SourceChange(ChangeKind.UNCHANGED, first, last)
    if not went:
        return SourceChange(ChangeKind.APPENDED, first, last, tuple(came))
    added, removed = _changed_files(table, commits)
    if not removed:  # what went had come in between
        kind = ChangeKind.APPENDED if added else ChangeKind.UNCHANGED
        return SourceChange(kind, first, last, added)
    feed = _has_feed(table, first, commits)
    return SourceChange(ChangeKind.CHANGED, first, last, added, removed, feed)


def missing_file(table: Place, files: Iterable[Action]) -> Place | None:
    """A file that a change lies in and that is gone: vacuum has removed it. Only files of this machine are looked for."""
    for file in files:
        path = str(file["path"])
        scheme = urlparse(path).scheme
        if scheme not in ("", "file"):
            continue
        place = of_spark(table, path) if scheme else table / unquote(path)
        if not place.exists():
            return place
    return None


def gone_with_its_files(table: Place, change: SourceChange, name: str) -> Issue | None:
    """Why a change can't be followed any more: a file that it lies in is gone; None where all are there, or a change feed says it."""
    if change.kind is ChangeKind.UNCHANGED or change.change_feed:
        return None
    missing = missing_file(table, (*change.added, *change.removed))
    if missing is None:
        return None
    reason = f"files that changes lie in are gone: {missing.name} of {name} was removed"
    return Issue(IssueType.DATA_FILE_MISSING, reason, table=name)


def _changed_files(table: Place, commits: list[list[Action]]) -> _Files:
    """Files whose rows came, and files whose rows went: the fewest bytes that say it, of files that are still there.

    Of a table whose files were moved, that is seldom all that the last version has and the first has not: rows that changed
    after an optimize came and went in few of the files that it made.
    """
    every = _net_files(commits)
    changing = [actions for actions in commits if not _only_moves(actions)]
    if len(changing) == len(commits) or not every[1]:
        return every
    options = sorted((every, _net_files(changing)), key=_size)
    if not isinstance(table, Path):  # each view would ask a store for each file
        return options[0]
    there = (files for files in options if missing_file(table, itertools.chain(*files)) is None)
    return next(there, options[0])


def _only_moves(actions: list[Action]) -> bool:
    """Whether a commit leaves all rows as they were: maintenance keeps the files of the others for readers."""
    files = [action[kind] for action in actions for kind in ("add", "remove") if kind in action]
    return bool(files) and not any(file.get("dataChange", True) for file in files)


def _size(files: _Files) -> int:
    return sum(int(file.get("size") or 0) for file in itertools.chain(*files))


def _net_files(commits: list[list[Action]]) -> _Files:
    """Files that the last version has and the first has not, and the reverse.

    A file is known by its path and its deletion vector: rows that are marked as deleted make another file of it.
    """
    came: dict[tuple[str, str], Action] = {}
    went: dict[tuple[str, str], Action] = {}
    for actions in commits:
        removes = [action["remove"] for action in actions if "remove" in action]
        for file in removes:
            key = _file_key(file)
            if came.pop(key, None) is None:
                went[key] = file
        for file in (action["add"] for action in actions if "add" in action):
            if not removes and not file.get("dataChange", True):
                continue  # new statistics, or ids of rows, for a file that is there
            key = _file_key(file)
            if went.pop(key, None) is None:
                came[key] = file
    return tuple(came.values()), tuple(went.values())


def _file_key(file: Mapping[str, Any]) -> tuple[str, str]:
    vector = file.get("deletionVector") or {}
    return str(file["path"]), json.dumps(
        [vector.get(part) for part in ("storageType", "pathOrInlineDv", "offset")]
    )


def _records(file: Mapping[str, Any]) -> int | None:
    stats = file.get("stats")
    return json.loads(stats).get("numRecords") if stats else None


def _shape_issue(  # noqa: PLR0911 - one return a reason
    table: Place, first: int, commits: list[list[Action]], columns: Collection[str], name: str
) -> Issue | None:
    """Why the rows of the two versions are not of one shape, None where they are."""
    protocols = [action["protocol"] for actions in commits for action in actions if "protocol" in action]
    # RESTORE writes down the one that is there.
    before = metadata_at(table, first) if protocols else None
    if any(before is None or not adds_harmless_features(before["protocol"], one) for one in protocols):
        return Issue(
            IssueType.DELTA_PROTOCOL_CHANGED,
            f"features of the Delta table {name} were changed",
            table=name,
        )
    after = next(_metadata_backwards(commits), None)
    if after is None:
        return None
    before = metadata_at(table, first)
    if before is None:
        return Issue(
            IssueType.CDF_UNAVAILABLE, f"version {first} of {name} can't be opened any more", table=name
        )
    if list(after.get("partitionColumns") or []) != before["partitionColumns"]:
        return Issue(IssueType.PARTITION_SCHEMA_CHANGED, f"{name} is partitioned in another way", table=name)
    mappings = mapping_of(before["configuration"]), mapping_of(after.get("configuration") or {})
    # Columns that get names of their own in the files are called there as before.
    if mappings[0] != mappings[1] and mappings != ("none", "name"):
        return Issue(IssueType.DELTA_PROTOCOL_CHANGED, f"columns of {name} are mapped anew", table=name)
    was, now = (
        columns_by_name(text, mappings[1]) for text in (before["schemaString"], after["schemaString"])
    )
    for column in sorted(columns):
        if was.get(column.lower()) != now.get(column.lower()):
            state = _state(was.get(column.lower()), now.get(column.lower()))
            reason = f"the column {column} of {name} {state}"
            return Issue(IssueType.DATA_SCHEMA_CHANGED, reason, table=name)
    return None


def _state(was: str | None, now: str | None) -> str:
    if was is None:
        return "is new"
    return "is gone" if now is None else "is not what it was"


def _metadata_backwards(commits: list[list[Action]]) -> Iterator[Action]:
    for actions in reversed(commits):
        for action in reversed(actions):
            if "metaData" in action:
                yield action["metaData"]


def metadata_at(table: Place, version: int) -> dict[str, Any] | None:
    """Schema, partitioning and properties of a version, None where it can't be opened."""
    from deltalake.exceptions import DeltaError

    try:
        opened = delta_table(table, version=version)
        metadata, protocol = opened.metadata(), opened.protocol()
        return {
            "id": str(metadata.id),
            "schemaString": opened.schema().to_json(),
            "partitionColumns": list(metadata.partition_columns),
            "configuration": dict(metadata.configuration),
            "protocol": {
                "minReaderVersion": protocol.min_reader_version,
                "minWriterVersion": protocol.min_writer_version,
                "readerFeatures": protocol.reader_features,
                "writerFeatures": protocol.writer_features,
            },
        }
    except (DeltaError, OSError):
        return None


def _has_feed(table: Place, first: int, commits: list[list[Action]]) -> bool:
    """Whether the feed was on at the beginning, and nothing turned it off or made other columns of those that were there.

    Delta reads no feed across such a change, whichever columns are asked for.
    """
    before = metadata_at(table, first)
    if before is None:
        return False
    states = [before, *reversed(list(_metadata_backwards(commits)))]
    configurations = [one.get("configuration") or {} for one in states]
    on = all(str(one.get(_CDF)).lower() == "true" for one in configurations)
    mappings = set(map(mapping_of, configurations))
    if not on or len(mappings) > 1:
        return False
    columns = [columns_by_name(one["schemaString"], *mappings).items() for one in states]
    return all(one <= other for one, other in itertools.pairwise(columns))
