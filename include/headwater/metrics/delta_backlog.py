"""What a stream from a Delta table has not read yet."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from headwater.delta_log.versions import AddedFile, Commit, TableHead, read_commit, snapshot_files, table_head
from headwater.metrics.backlog import Backlog
from headwater.storage.place import Place


def delta_backlog(table: Place, offset: Mapping[str, Any] | None, options: Mapping[str, str]) -> Backlog:
    """The unread part of the table at ``table``.

    ``offset``: the checkpoint's (``reservoirVersion``, ``index``, ``isStartingVersion``), None if never run.
    """
    head = table_head(table)
    if head is None:
        return Backlog.because(f"there is no Delta table at {table}")
    if offset is None:
        return _before_first_run(table, head, options)
    version, index = int(offset["reservoirVersion"]), int(offset.get("index", -1))
    if offset.get("reservoirId") not in (None, head.table_id) or version > head.version + 1:
        # Another table, or one that was brought back from a copy; the checks before a start say more.
        return Backlog.because(
            f"the table at {table} was recreated since it was last read, or ends before that", moved=True
        )
    if version > head.version:
        return Backlog(0, 0, 0, 0, 0.0, moved=False)
    # Up to this file (of the version, or of the first snapshot) all was read; negative: none.
    done = max(0, index + 1)
    if offset.get("isStartingVersion"):
        rest = snapshot_files(table, version)[done:]
        return _of_commits(table, head, version + 1, options, first=rest)
    return _of_commits(table, head, version, options, skip=done)


def unread_since(table: Place, version: int) -> Backlog:
    """What was committed after ``version``, for a flow that reads the whole table each time."""
    head = table_head(table)
    if head is None:
        return Backlog.because(f"there is no Delta table at {table}")
    return _of_commits(table, head, version + 1, {"readChangeFeed": "true"})


def _before_first_run(table: Place, head: TableHead, options: Mapping[str, str]) -> Backlog:
    start = options.get("startingVersion")
    if options.get("startingTimestamp"):
        return Backlog.because("the first run starts at a point in time", moved=True)
    if start == "latest":
        # What is committed after the stream has started; before that nothing is certain.
        return Backlog(0, 0, 0, 0, 0.0, moved=None)
    if start is not None and start.isdigit():
        return _of_commits(table, head, int(start), options)
    files = snapshot_files(table)
    age = 0.0
    if files:
        first = read_commit(table, 0)
        age = max(0.0, time.time() - first.timestamp) if first else 0.0
    return Backlog(_records(files), sum(f.bytes for f in files), len(files), None, age, moved=bool(files))


def _of_commits(
    table: Place,
    head: TableHead,
    start: int,
    options: Mapping[str, str],
    *,
    skip: int = 0,
    first: Sequence[AddedFile] = (),
) -> Backlog:
    commits = [read_commit(table, version) for version in range(start, head.version + 1)]
    readable = [commit for commit in commits if commit is not None]
    if len(readable) < len(commits):
        return Backlog.because("commits that were not read yet are gone from the table's log", moved=True)
    changes = _flag(options, "readChangeFeed")
    news = [commit for commit in readable if _is_news(commit, options, changes=changes)]
    files = [file for commit in news for file in _unread(commit, start, skip)]
    # A version of which every file was read is not unread.
    counted = [c for c in news if _unread(c, start, skip) or (changes and c.removes_data)]
    files = [*first, *files]
    # The rest of a first snapshot is older than any commit after it.
    oldest = read_commit(table, start - 1) if first else (counted[0] if counted else None)
    exact = not changes or not any(commit.removes_data for commit in counted)
    return Backlog(
        _records(files) if exact else None,
        sum(file.bytes for file in files),
        len(files),
        len(counted),
        max(0.0, time.time() - oldest.timestamp) if oldest else 0.0,
        moved=bool(files or counted),
    )


def _is_news(commit: Commit, options: Mapping[str, str], *, changes: bool) -> bool:
    if changes:
        return commit.changes_data
    if commit.removes_data and _flag(options, "skipChangeCommits"):
        return False
    return bool(commit.added)


def _unread(commit: Commit, start: int, skip: int) -> tuple[AddedFile, ...]:
    return commit.added[skip:] if commit.version == start else commit.added


def _records(files: Sequence[AddedFile]) -> int | None:
    counts = [file.records for file in files if file.records is not None]
    return sum(counts) if len(counts) == len(files) else None


def _flag(options: Mapping[str, str], name: str) -> bool:
    lowered = {key.lower(): value for key, value in options.items()}
    return lowered.get(name.lower(), "false").lower() == "true"
