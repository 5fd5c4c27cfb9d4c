"""A range of versions of a table, and what changed in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from headwater.change_feed.commit_changes import CommitChanges, commit_changes
from headwater.change_feed.counts import NO_CHANGES, ChangeCounts
from headwater.delta_log.versions import AddedFile, snapshot_files, table_head
from headwater.errors import ChangeFeedBroken
from headwater.storage.delta_tables import delta_table
from headwater.storage.place import Place


@dataclass(frozen=True)
class FeedPosition:
    """Everything up to ``version`` of the table with this id (Delta's) is dealt with."""

    table_id: str
    version: int


@dataclass(frozen=True)
class ChangeRange:
    """The changes from ``start_version`` to ``end_version``, both included.

    Attributes:
        table: ``[catalog.]schema.table``.
        table_id: Delta's id; another one means that the table was recreated.
        start_version, end_version: versions of the table; equal for a single commit.
        snapshot: the range is all that the table holds at ``end_version``, as inserted rows.
        counts: rows by type of change.
        committed_at: when the newest commit that changed data was made, in ISO format.
        changes_data: False where files were only moved (optimize) or nothing but the schema or properties changed.
        rewrites: rows were changed and the table kept no change feed of it, so the changes can't be read.

    """

    table: str
    table_id: str
    start_version: int
    end_version: int
    snapshot: bool = False
    counts: ChangeCounts = NO_CHANGES
    committed_at: str | None = None
    changes_data: bool = True
    rewrites: bool = False

    @property
    def position(self) -> FeedPosition:
        """The position of a reader that has processed the range."""
        return FeedPosition(self.table_id, self.end_version)

    def as_dict(self) -> dict[str, Any]:
        """The range as JSON values."""
        return asdict(self)

    @classmethod
    def of_dict(cls, values: Mapping[str, Any]) -> ChangeRange:
        """The range that ``as_dict`` gave."""
        return cls(**{**values, "counts": ChangeCounts(**values["counts"])})


def range_after(
    name: str,
    table: Place,
    after: FeedPosition | None,
    *,
    columns: Sequence[str] = (),
    known: dict[int, CommitChanges] | None = None,
) -> ChangeRange | None:
    """What changed since ``after`` (None: all that the table holds), or None where no version came since.

    Args:
        name: of the table, ``[catalog.]schema.table``.
        table: its folder.
        after: the last version that needs no more attention.
        columns: count only updates that change one of these.
        known: commits that were read before, by version; those that are read now are added.

    Raises:
        ChangeFeedBroken: if the table was recreated since, or the next commits are gone from its log.
        SourceUnreachable: if the log can't be read.

    """
    head = table_head(table)
    if head is None:
        return None
    if after is None:
        return _snapshot(name, table, head.table_id, head.version)
    if after.table_id != head.table_id or head.version < after.version:
        raise ChangeFeedBroken(
            f"The table {name} was recreated since its version {after.version} was read.",
            remedy="Decide what that means for data derived from its rows, then start again from its present content.",
        )
    if head.version == after.version:
        return None
    commits = {} if known is None else known
    for version in range(after.version + 1, head.version + 1):
        if version not in commits:
            changes = commit_changes(table, version, columns)
            if changes is None:
                raise ChangeFeedBroken(
                    f"Version {version} of {name} was not read yet and is gone from the table's log.",
                    remedy="Start again from the table's present content, and keep its log longer "
                    "(delta.logRetentionDuration) than readers may be stopped.",
                )
            commits[version] = changes
    unread = [commits[version] for version in range(after.version + 1, head.version + 1)]
    return _of_commits(name, head.table_id, unread)


def the_same_range(table: Place, begun: ChangeRange) -> ChangeRange:
    """A range that was begun before, with its bounds; raises ChangeFeedBroken if the table was recreated since."""
    head = table_head(table)
    if head is None or head.table_id != begun.table_id or head.version < begun.end_version:
        raise ChangeFeedBroken(
            f"The table {begun.table} is gone, or was recreated, while its versions {begun.start_version} to "
            f"{begun.end_version} were being dealt with.",
            remedy="Decide what that means for data derived from its rows, then start again from its present content.",
        )
    return begun


def _snapshot(name: str, table: Place, table_id: str, version: int) -> ChangeRange:
    files = snapshot_files(table, version)
    rows = _rows(table, version, files)
    snapshot_range = ChangeRange(name, table_id, 0, version, snapshot=True, counts=ChangeCounts(insert=rows))
    newest = commit_changes(table, version)
    return replace(
        snapshot_range, changes_data=bool(files), committed_at=_iso(newest.timestamp) if newest else None
    )


def _rows(table: Place, version: int, files: Sequence[AddedFile]) -> int | None:
    """How many rows a version holds, None where its statistics do not say."""
    from deltalake import QueryBuilder

    opened = delta_table(table, version=version)
    if "deletionVectors" in (opened.protocol().reader_features or ()):
        # Statistics count rows that vectors have deleted since.
        counted = QueryBuilder().register("rows", opened).execute("select count(*) as n from rows").read_all()
        return int(counted["n"][0].as_py())
    records = [file.records for file in files]
    return None if None in records else sum(count or 0 for count in records)


def _of_commits(name: str, table_id: str, commits: Sequence[CommitChanges]) -> ChangeRange:
    changing = [commit for commit in commits if commit.changes_data]
    counts = NO_CHANGES
    for commit in changing:
        counts += commit.counts
    return ChangeRange(
        name,
        table_id,
        commits[0].version,
        commits[-1].version,
        counts=counts,
        committed_at=_iso(changing[-1].timestamp) if changing else None,
        changes_data=bool(changing),
        rewrites=any(commit.rewrites for commit in changing),
    )


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
