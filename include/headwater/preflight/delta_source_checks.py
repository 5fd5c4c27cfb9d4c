"""Streams from Delta tables: whether the table still has what is unread, in a form that the stream can read.

Decision 0098.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from headwater.checkpoints.conditions import (
    ChangeFeedMissing,
    SourceFilesGone,
    SourceGone,
    SourceReplaced,
    SourceRowsChanged,
)
from headwater.checkpoints.offsets import read_offsets
from headwater.delta_log.commits import Action, commit_info, data_files
from headwater.delta_log.table_history import table_exists, table_id
from headwater.errors import CheckpointUnreadable
from headwater.preflight.damage import Damage, Repair
from headwater.preflight.delta_source_log import (
    MOST_COMMITS,
    CommitDamaged,
    Unread,
    commit_damage,
    log_is_broken,
    log_is_cut,
    source_commit_is_damaged,
)
from headwater.preflight.flow_start import FlowStart, StreamSource
from headwater.preflight.read_commits import source_was_brought_back
from headwater.preflight.source_checks import last_offsets, offset_of

# Checking more files than this would hold up the start; the oldest are the first to go.
_MOST_FILES = 1000
_FROM_THE_START = (Repair.NEW_EPOCH, Repair.FULL_REFRESH)


def table_is_gone(start: FlowStart) -> Iterator[Damage]:
    """Spark would report that the schema is not set, where in fact there is no table."""
    for source in start.sources or ():
        if source.table is None or not start.committed or table_exists(source.table):
            continue
        yield Damage(
            SourceGone(
                f"The table {source.name or source.table.name!r} that {start.flow!r} reads is gone.",
                where=source.table,
                remedy="Put the table back. A new one under its name takes a new epoch: "
                f"{start.command('new-epoch')} --from-start",
            ),
            ("the table has no log",),
            _FROM_THE_START,
        )


def delta_sources(start: FlowStart) -> Iterator[Damage]:
    """All findings in the logs of the Delta tables that a stream reads."""
    offsets = last_offsets(start)
    for index, source in enumerate(start.sources or ()):
        if source.table is None or not table_exists(source.table):
            continue
        offset = None if offsets is None else offset_of(start, offsets, index)
        if not isinstance(offset, dict) or "reservoirVersion" not in offset:
            yield from source_commit_is_damaged(source, source.table)
            continue
        again = _planned_again(start, index, offset)
        try:
            yield from _of_table(start, index, Unread(source, source.table, offset, again))
        except CommitDamaged as damaged:
            yield commit_damage(source.name or source.table.name, source.table, *damaged.args)


def _planned_again(start: FlowStart, index: int, offset: Mapping[str, Any]) -> int | None:
    last = max(start.committed)
    if max(start.planned) > last:
        return None  # the batch in flight is run instead
    try:
        before = offset_of(start, read_offsets(start.folder, last - 1), index)
    except CheckpointUnreadable:
        before = None
    if isinstance(before, dict) and "reservoirVersion" in before:
        return int(before["reservoirVersion"])
    # For a first batch, Delta takes the version before its end as its beginning.
    return max(0, int(offset["reservoirVersion"]) - 1)


def _of_table(start: FlowStart, index: int, unread: Unread) -> Iterator[Damage]:
    recorded, now = unread.offset.get("reservoirId"), table_id(unread.table)
    broken = list(log_is_broken(unread))
    if not broken and unread.commits and unread.version <= unread.commits[-1]:
        since = 0 if unread.first_read else unread.version
        broken = list(
            source_commit_is_damaged(unread.source, unread.table, readable=now is not None, since=since)
        )
    if broken:
        yield from broken
        return
    if recorded is not None and now is not None and recorded != now:
        yield Damage(
            SourceReplaced(
                f"The table {unread.name!r} was recreated since {start.flow!r} last read it.",
                where=unread.table,
                remedy=f"Read the new table from its beginning, and keep the rows: {start.command('new-epoch')} --from-start; "
                f"or refill the table: headwater run PIPELINE_DIR --full-refresh {start.dataset}",
            ),
            (f"table id before: {recorded}", f"table id now: {now}"),
            _FROM_THE_START,
        )
        return
    brought_back = list(source_was_brought_back(start, index, unread))
    if brought_back:
        yield from brought_back
        return
    if unread.version <= unread.commits[-1]:
        yield from log_is_cut(start, unread)
        if not unread.reads_changes:
            yield from _changed_or_missing(start, unread)
    if unread.reads_changes:
        yield from _without_feed(start, unread)


def _without_feed(start: FlowStart, unread: Unread) -> Iterator[Damage]:
    feed: bool | None = None
    rows_ahead = False
    for version, actions in unread.commits_ahead():
        setting = _feed_setting(actions)
        if setting is not None or feed is None:
            feed = setting if setting is not None else _feed_at(unread, version)
        rows = any(data_files(actions, kind) for kind in ("add", "remove"))
        if rows and not feed:
            yield _no_feed(start, unread, version)
            return
        rows_ahead = rows_ahead or rows
    # No batch may begin where the feed was off, also at a commit without rows.
    if unread.again is not None and not _feed_at(unread, unread.again):
        yield _no_beginning(start, unread, unread.again)
    elif rows_ahead and not _feed_at(unread, unread.version):
        yield _no_beginning(start, unread, unread.version)


def _changed_or_missing(start: FlowStart, unread: Unread) -> Iterator[Damage]:
    missing: list[str] = []
    looked = 0
    for version, actions in unread.commits_ahead():
        adds, removes = data_files(actions, "add"), data_files(actions, "remove")
        if removes and unread.source.on("skipChangeCommits"):
            continue
        if removes and _refused(unread.source, adds=bool(adds)):
            yield _changed(start, unread, version, actions)
            return
        for add in adds[unread.skip if version == unread.version else 0 :]:
            looked += 1
            path = unread.table / unquote(str(add["path"]))
            if looked <= _MOST_FILES and not path.exists():
                missing.append(f"version {version}: {path.name}")
    if missing:
        yield Damage(
            SourceFilesGone(
                f"Files of the table {unread.name!r} with rows that {start.flow!r} has not read are gone: vacuumed, or deleted.",
                where=unread.table,
                remedy=f"Restore the files; or refill the table: headwater run PIPELINE_DIR --full-refresh {start.dataset}",
            ),
            tuple(missing[:10]),
            (Repair.FULL_REFRESH, Repair.NEW_EPOCH),
        )


def _refused(source: StreamSource, *, adds: bool) -> bool:
    if source.on("ignoreChanges"):
        return False
    return adds or not source.on("ignoreDeletes")


def _changed(start: FlowStart, unread: Unread, version: int, actions: list[Action]) -> Damage:
    info = commit_info(actions)
    return Damage(
        SourceRowsChanged(
            f"Version {version} of the table {unread.name!r} changed or deleted rows ({info.get('operation', 'unknown')}), "
            f"and {start.flow!r} only takes new ones.",
            where=unread.table,
            remedy='Read the table\'s changes (.option("readChangeFeed", "true")), leave such commits out '
            f'(.option("skipChangeCommits", "true")), or refill the table: headwater run PIPELINE_DIR --full-refresh {start.dataset}',
        ),
        (f"position: version {unread.version}", f"version {version}: {info.get('operation', 'unknown')}"),
        (Repair.FULL_REFRESH,),
    )


def _feed_at(unread: Unread, version: int) -> bool:
    """Whether changes were recorded at a version: by the newest setting in the log, as far back as it reaches."""
    for number in reversed([v for v in unread.commits if v <= version][-MOST_COMMITS:]):
        setting = _feed_setting(unread.actions(number))
        if setting is not None:
            return setting
    return True  # it can't be known


def _feed_setting(actions: list[Action]) -> bool | None:
    """What a commit sets of the change feed, None where it sets nothing."""
    for action in actions:
        if "metaData" in action:
            setting = action["metaData"].get("configuration", {}).get("delta.enableChangeDataFeed", "false")
            return str(setting).lower() == "true"
    return None


def _no_feed(start: FlowStart, unread: Unread, version: int) -> Damage:
    return Damage(
        ChangeFeedMissing(
            f"{start.flow!r} reads the changes of the table {unread.name!r}, and version {version} recorded none.",
            where=unread.table,
            remedy="Set the table's property delta.enableChangeDataFeed to true, and refill the reader: "
            f"headwater run PIPELINE_DIR --full-refresh {start.dataset}",
        ),
        (
            f"position: version {unread.version}",
            f"delta.enableChangeDataFeed was not true at version {version}",
        ),
        (Repair.FULL_REFRESH, Repair.NEW_EPOCH),
    )


def _no_beginning(start: FlowStart, unread: Unread, version: int) -> Damage:
    head = unread.commits[-1]
    # What lies between has no rows.
    there = next((v for v in range(unread.version, head + 1) if _feed_at(unread, v)), None)
    on = there is not None or _feed_at(unread, head)
    begins = there if there is not None else max(unread.version, head + 1)
    how = "plans the batch that began there once more" if version == unread.again else "would begin there"
    first = "" if on else "Set the table's property delta.enableChangeDataFeed to true. "
    return Damage(
        ChangeFeedMissing(
            f"{start.flow!r} reads the changes of the table {unread.name!r}, whose change feed was off at version {version}: "
            f"Spark {how}, and Delta refuses.",
            where=unread.table,
            remedy=f"{first}A new epoch loses and doubles nothing: {start.command('new-epoch')} --from-version {begins}; "
            f"or refill the table: headwater run PIPELINE_DIR --full-refresh {start.dataset}",
        ),
        (
            f"position: version {unread.version}",
            f"delta.enableChangeDataFeed was not true at version {version}",
        ),
        (Repair.NEW_EPOCH, Repair.FULL_REFRESH),
    )
