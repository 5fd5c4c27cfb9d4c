"""What a refresh says of itself in its own commit, and reading the newest one back: the view's log is the truth.

Decisions 0164, 0220.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from headwater.delta_log.commits import (
    CommitHead,
    commit_file,
    commit_head,
    commit_versions,
    commit_written,
    data_files,
    read_actions,
)
from headwater.delta_log.missing_files import missing_of_newest
from headwater.delta_log.versions import TableHead
from headwater.incremental.techniques import Issue, IssueType
from headwater.storage.place import Place

# Counted up when what a record says is read in another way: older ones then count for nothing.
FORMAT = 1
# The key in a commit's user metadata.
KEY = "refresh"
# Where a flow's state says up to where changes of the sources came to nothing since that commit.
SEEN = "seen"


@dataclass(frozen=True)
class SourceState:
    """Where a source stood: which table it was (by Delta's id), at which version.

    ``written``: when that version was made, by its writer's clock in milliseconds; None where that is not known. A table that was
    brought back from a copy has its id, and other commits under the numbers that come next.
    """

    table_id: str
    version: int
    written: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """As the commit has it."""
        body = {"id": self.table_id, "version": self.version}
        return body if self.written is None else {**body, "written": self.written}

    def is_not_before(self, other: SourceState) -> bool:
        """Whether it is the same table, at the same version or a later one."""
        return self.table_id == other.table_id and self.version >= other.version

    def is_of_another_history(self, table: Place) -> bool:
        """Whether the table now has another commit under this version's number; False as well where that can't be known."""
        now = commit_written(table, self.version) if self.written is not None else None
        return now is not None and now != self.written

    def break_before(self, head: TableHead, table: Place, name: str) -> Issue | None:
        """Why the table that stands there now, at ``head``, does not go on from this state; None where it does."""
        if self.table_id != head.table_id or self.version > head.version:
            reason = f"{name} is another table than at the last refresh: it was made anew"
        elif self.is_of_another_history(table):
            reason = (
                f"version {self.version} of {name} is another one than the last refresh read: the table was brought back "
                "from a copy, or its log was written anew"
            )
        else:
            return None
        return Issue(IssueType.CHANGE_SET_MISSING, reason, table=name)


@dataclass(frozen=True)
class RefreshRecord:
    """What a refresh did.

    Args:
        technique: how.
        fingerprint: of the query, and of what else decides about its rows.
        settings: of the session, as far as they decide about rows.
        sources: where each Delta table stood that was read, by its folder; None where rows were read
            that belong to no known version.
        others: what the sources that are no Delta tables were at, by their key.
        update: which update made the commit that it was read from; the commit says that itself.
    """

    technique: str
    fingerprint: str
    settings: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, SourceState] | None = None
    others: Mapping[str, str] = field(default_factory=dict)
    update: str | None = field(default=None, compare=False)

    @property
    def seen(self) -> dict[str, Any]:
        """What a flow's state keeps where changes of the sources up to here came to nothing: the view has no commit of that."""
        return {"fingerprint": self.fingerprint, "sources": self.as_dict()["sources"]}

    def going_on_from(self, refresh: Mapping[str, Any]) -> RefreshRecord:
        """The record with its sources as the flow's state knows them since; as it is where the state is of another refresh.

        Changes that came to nothing are not looked into again with those that come next: these may be new rows alone.
        """
        seen = refresh.get(SEEN)
        if not isinstance(seen, Mapping) or self.update is None or refresh.get("update") != self.update:
            return self
        try:
            sources = _sources(seen["sources"])
        except (KeyError, TypeError, ValueError, AttributeError):
            return self
        same = seen.get("fingerprint") == self.fingerprint and self.sources is not None
        if not same or sources is None or sources.keys() != (self.sources or {}).keys():
            return self
        # An update of many rounds makes many commits: what was seen before the last of them, whose driver then died, is behind it.
        if any(not sources[key].is_not_before(state) for key, state in (self.sources or {}).items()):
            return self
        return replace(self, sources=sources)

    def as_dict(self) -> dict[str, Any]:
        """As the commit has it."""
        sources = self.sources
        return {
            "format": FORMAT,
            "technique": self.technique,
            "fingerprint": self.fingerprint,
            "settings": dict(self.settings),
            "sources": None if sources is None else {key: state.as_dict() for key, state in sources.items()},
            "others": dict(self.others),
        }


def read_record(metadata: Mapping[str, Any]) -> RefreshRecord | Issue:
    """The record in a commit's metadata, or why it counts for nothing."""
    body = metadata.get(KEY)
    if not isinstance(body, Mapping):
        return Issue(IssueType.CHANGE_SET_MISSING, "the last refresh left no record of what it read")
    if body.get("format") != FORMAT:
        return Issue(
            IssueType.SERIALIZATION_VERSION_CHANGED, "another version of Headwater made the last refresh"
        )
    update = metadata.get("update")
    try:
        return RefreshRecord(
            str(body["technique"]),
            str(body["fingerprint"]),
            {str(key): str(value) for key, value in body["settings"].items()},
            _sources(body.get("sources")),
            {str(key): str(value) for key, value in body["others"].items()},
            None if update is None else str(update),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return Issue(IssueType.CHANGE_SET_MISSING, "the last refresh's record can't be read")


def _sources(body: Mapping[str, Any] | None) -> dict[str, SourceState] | None:
    if body is None:
        return None
    return {
        str(key): SourceState(str(state["id"]), int(state["version"]), state.get("written"))
        for key, state in body.items()
    }


@dataclass(frozen=True)
class ViewLog:
    """What a view's log says of its rows.

    Args:
        foreign: the version of a commit that changed them after the view's own newest refresh; None where there is none.
        update: which update made that refresh; None where the log does not say.
    """

    foreign: int | None = None
    update: str | None = None

    def stands_at(self, refresh: Mapping[str, Any]) -> bool:
        """Whether the rows are those of the refresh that the flow's state knows as the last one: a copy may have been brought back."""
        return self.foreign is None and refresh.get("update", self.update) == self.update


def view_log(table: Place, pipeline: str, flow: str) -> ViewLog:
    """Read a view's log back to its own newest refresh.

    A table whose whole log has no commit of the flow was written by something else from the beginning: that is no change.
    """
    versions = commit_versions(table)
    foreign: int | None = None
    own = False
    for version in reversed(versions):
        file = commit_file(table, version)
        try:
            metadata = commit_head(file).metadata
            if metadata.get("pipeline") == pipeline and metadata.get("flow") == flow:
                own = True
                if "update" in metadata:
                    return ViewLog(foreign, str(metadata["update"]))
                continue  # rows that were replayed for the view
            actions = [] if own or foreign is not None else read_actions(file)
        except (OSError, ValueError):
            return ViewLog(foreign)
        if data_files(actions, "add") or data_files(actions, "remove"):
            foreign = version
    return ViewLog(foreign if own or (versions and versions[0] > 0) else None)


def lost_files(table: Place) -> Issue | None:
    """Why a view can't be gone on from: files that its newest refresh wrote are gone or cut, so it has to be computed whole; None where they are there."""
    try:
        missing = missing_of_newest(table)
    except (FileNotFoundError, ValueError, KeyError):
        return None  # a log like this is read again below, or refused
    return (
        Issue(IssueType.DATA_FILE_MISSING, f"files of the view are gone or cut: {missing[0]}")
        if missing
        else None
    )


def last_record(table: Place, pipeline: str, flow: str) -> RefreshRecord | Issue:
    """The record of a view's newest refresh, or why there is none that tells what the view's rows are.

    Args:
        table: the view's folder.
        pipeline: whose commits they are, by the names in them; ``flow``: likewise.
    """
    for version in reversed(commit_versions(table)):
        file = commit_file(table, version)
        try:
            head = commit_head(file)
            if _is_own(head, pipeline, flow):
                return read_record(head.metadata)
            actions = read_actions(file)
        except (OSError, ValueError):
            break
        if data_files(actions, "add") or data_files(actions, "remove"):
            return Issue(
                IssueType.DATA_HAS_CHANGED,
                f"rows of the view were changed by something else than its refresh (version {version})",
            )
    return Issue(IssueType.CHANGE_SET_MISSING, "there is no earlier refresh to go on from")


def _is_own(head: CommitHead, pipeline: str, flow: str) -> bool:
    metadata = head.metadata
    return metadata.get("pipeline") == pipeline and metadata.get("flow") == flow and "refresh" in metadata
