"""Streams from Delta tables: whether the table still has what is unread, in a form that the stream can read.

Decision 0098.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import unquote

from headwater.checkpoints.conditions import (
    ChangeFeedMissing,
    SourceFilesGone,
    SourceGone,
    SourceLogCut,
    SourceLogHole,
    SourceReplaced,
    SourceRowsChanged,
    TableLogDamaged,
)
from headwater.checkpoints.offsets import read_offsets
from headwater.delta_log.commits import (
    commit_file,
    commit_info,
    commit_versions,
    data_files,
    log_folder,
    read_actions,
)
from headwater.delta_log.table_history import damaged_commit, missing_versions, table_exists, table_id
from headwater.errors import CheckpointUnreadable
from headwater.preflight.damage import Damage, Repair
from headwater.preflight.flow_start import FlowStart, StreamSource
from headwater.preflight.source_checks import last_offsets, offset_of
from headwater.storage.place import Place

# Checking more files than this would hold up the start; the oldest are the first to go.
_MOST_FILES = 1000
_MOST_COMMITS = 200
_MOST_BYTES = 4_000_000
_FROM_THE_START = (Repair.NEW_EPOCH, Repair.FULL_REFRESH)


@dataclass(frozen=True)
class _Unread:
    """What a stream has yet to read: the table's log, and the position in it.

    ``again``: the version from which Spark plans the last batch again at each start; None where it does not.
    """

    source: StreamSource
    table: Place
    offset: Mapping[str, Any]
    again: int | None = None

    @property
    def version(self) -> int:
        return int(self.offset["reservoirVersion"])

    @property
    def first_read(self) -> bool:
        """Whether the first snapshot is still being read."""
        return bool(self.offset.get("isStartingVersion"))

    @cached_property
    def names(self) -> list[str]:
        return [path.name for path in log_folder(self.table).iterdir()]

    @cached_property
    def commits(self) -> list[int]:
        return commit_versions(self.table)

    @cached_property
    def checkpoints(self) -> list[int]:
        return sorted({int(n[:20]) for n in self.names if n[:20].isdigit() and ".checkpoint" in n})

    def commits_ahead(self) -> Iterator[tuple[int, list[dict[str, Any]]]]:
        """The commits that are to be read, of those that are there; bounded, so that a start is not held up."""
        first = self.version + (1 if self.first_read else 0)
        size = 0
        for version in [number for number in self.commits if number >= first][:_MOST_COMMITS]:
            size += commit_file(self.table, version).stat().st_size
            if size > _MOST_BYTES:
                return
            yield version, self.actions(version)

    def actions(self, version: int) -> list[dict[str, Any]]:
        return read_actions(commit_file(self.table, version))

    @property
    def reads_changes(self) -> bool:
        """Whether the stream asks for the change feed."""
        return self.source.on("readChangeFeed") or self.source.on("readChangeData")

    @property
    def skip(self) -> int:
        """How many files of the first version were read."""
        return max(0, int(self.offset.get("index", -1)) + 1)


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
        if source.table is None or offsets is None or not table_exists(source.table):
            continue
        offset = offset_of(start, offsets, index)
        if isinstance(offset, dict) and "reservoirVersion" in offset:
            again = _planned_again(start, index, offset)
            yield from _of_table(start, _Unread(source, source.table, offset, again))


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


def _of_table(start: FlowStart, unread: _Unread) -> Iterator[Damage]:
    recorded, now = unread.offset.get("reservoirId"), table_id(unread.table)
    broken = list(_log_is_broken(unread, readable=now is not None))
    if broken:
        yield from broken
        return
    if recorded is not None and now is not None and recorded != now:
        yield Damage(
            SourceReplaced(
                f"The table {_name(unread)!r} was recreated since {start.flow!r} last read it.",
                where=unread.table,
                remedy=f"Read the new table from its beginning, and keep the rows: {start.command('new-epoch')} --from-start; "
                f"or refill the table: headwater run PIPELINE_DIR --full-refresh {start.dataset}",
            ),
            (f"table id before: {recorded}", f"table id now: {now}"),
            _FROM_THE_START,
        )
        return
    if unread.version <= unread.commits[-1]:
        yield from _log_is_cut(start, unread)
        if not unread.reads_changes:
            yield from _changed_or_missing(start, unread)
    if unread.reads_changes:
        yield from _without_feed(start, unread)


def _log_is_broken(unread: _Unread, *, readable: bool) -> Iterator[Damage]:
    holes = missing_versions(unread.table)
    if holes:
        yield Damage(
            SourceLogHole(
                f"The log of the table {_name(unread)!r} has a hole: version {holes[0]} is missing, and later ones are there.",
                where=unread.table / "_delta_log",
                remedy="Restore the file from a backup. Nothing can write to the table until then.",
            ),
            (
                f"missing versions: {holes[:10]}",
                f"versions there: {unread.commits[0]} to {unread.commits[-1]}",
            ),
            _FROM_THE_START,
        )
        return
    with suppress(FileNotFoundError):  # cleaned away meanwhile, after later ones
        damaged = damaged_commit(unread.table, readable=readable)
        if damaged is not None:
            file, fault = damaged
            yield Damage(
                TableLogDamaged(
                    f"A commit of the table {_name(unread)!r}, version {int(file.stem)}, is damaged: {fault}. Rows that it added would be "
                    "passed over.",
                    where=file,
                    remedy="Restore the file from a backup, or have whoever fills the table write it again. Nothing was read.",
                ),
                (f"version {int(file.stem)}: {fault}",),
            )


def _log_is_cut(start: FlowStart, unread: _Unread) -> Iterator[Damage]:
    first = unread.commits[0]
    if unread.first_read:
        base = max((v for v in unread.checkpoints if v <= unread.version), default=None)
        fine = first == 0 or (base is not None and first <= base + 1)
    else:
        fine = first <= unread.version
    if fine:
        return
    lost = f"versions {unread.version} to {first - 1}"
    yield Damage(
        SourceLogCut(
            f"{start.flow!r} has not read {lost} of the table {_name(unread)!r}, and they have left its log.",
            where=unread.table / "_delta_log",
            remedy=f"Refill the table: headwater run PIPELINE_DIR --full-refresh {start.dataset}; or go on without them: "
            f"{start.command('new-epoch')} --from-version {first}. failOnDataLoss does not help here.",
        ),
        (f"position: version {unread.version}", f"oldest version in the log: {first}"),
        (Repair.FULL_REFRESH, Repair.NEW_EPOCH),
    )


def _without_feed(start: FlowStart, unread: _Unread) -> Iterator[Damage]:
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


def _changed_or_missing(start: FlowStart, unread: _Unread) -> Iterator[Damage]:
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
                f"Files of the table {_name(unread)!r} with rows that {start.flow!r} has not read are gone: vacuumed, or deleted.",
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


def _changed(start: FlowStart, unread: _Unread, version: int, actions: list[dict[str, Any]]) -> Damage:
    info = commit_info(actions)
    return Damage(
        SourceRowsChanged(
            f"Version {version} of the table {_name(unread)!r} changed or deleted rows ({info.get('operation', 'unknown')}), "
            f"and {start.flow!r} only takes new ones.",
            where=unread.table,
            remedy='Read the table\'s changes (.option("readChangeFeed", "true")), leave such commits out '
            f'(.option("skipChangeCommits", "true")), or refill the table: headwater run PIPELINE_DIR --full-refresh {start.dataset}',
        ),
        (f"position: version {unread.version}", f"version {version}: {info.get('operation', 'unknown')}"),
        (Repair.FULL_REFRESH,),
    )


def _feed_at(unread: _Unread, version: int) -> bool:
    """Whether changes were recorded at a version: by the newest setting in the log, as far back as it reaches."""
    for number in reversed([v for v in unread.commits if v <= version][-_MOST_COMMITS:]):
        setting = _feed_setting(unread.actions(number))
        if setting is not None:
            return setting
    return True  # it can't be known


def _feed_setting(actions: list[dict[str, Any]]) -> bool | None:
    """What a commit sets of the change feed, None where it sets nothing."""
    for action in actions:
        if "metaData" in action:
            setting = action["metaData"].get("configuration", {}).get("delta.enableChangeDataFeed", "false")
            return str(setting).lower() == "true"
    return None


def _no_feed(start: FlowStart, unread: _Unread, version: int) -> Damage:
    return Damage(
        ChangeFeedMissing(
            f"{start.flow!r} reads the changes of the table {_name(unread)!r}, and version {version} recorded none.",
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


def _no_beginning(start: FlowStart, unread: _Unread, version: int) -> Damage:
    head = unread.commits[-1]
    # What lies between has no rows.
    there = next((v for v in range(unread.version, head + 1) if _feed_at(unread, v)), None)
    on = there is not None or _feed_at(unread, head)
    begins = there if there is not None else max(unread.version, head + 1)
    how = "plans the batch that began there once more" if version == unread.again else "would begin there"
    first = "" if on else "Set the table's property delta.enableChangeDataFeed to true. "
    return Damage(
        ChangeFeedMissing(
            f"{start.flow!r} reads the changes of the table {_name(unread)!r}, whose change feed was off at version {version}: "
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


def _name(unread: _Unread) -> str:
    return unread.source.name or unread.table.name
