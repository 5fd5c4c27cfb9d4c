"""What a refresh says of itself in its own commit, and reading the newest one back: the view's log is the truth.

Decision 0164.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headwater.delta_log.commits import (
    CommitHead,
    commit_file,
    commit_head,
    commit_versions,
    data_files,
    read_actions,
)
from headwater.incremental.techniques import Issue, IssueType
from headwater.storage.place import Place

# Counted up when what a record says is read in another way: older ones then count for nothing.
FORMAT = 1
# The key in a commit's user metadata.
KEY = "refresh"


@dataclass(frozen=True)
class SourceState:
    """Where a source stood: which table it was (by Delta's id), at which version."""

    table_id: str
    version: int


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
    """

    technique: str
    fingerprint: str
    settings: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, SourceState] | None = None
    others: Mapping[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """As the commit has it."""
        sources = self.sources
        return {
            "format": FORMAT,
            "technique": self.technique,
            "fingerprint": self.fingerprint,
            "settings": dict(self.settings),
            "sources": None
            if sources is None
            else {key: {"id": state.table_id, "version": state.version} for key, state in sources.items()},
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
    sources = body.get("sources")
    try:
        return RefreshRecord(
            str(body["technique"]),
            str(body["fingerprint"]),
            {str(key): str(value) for key, value in body["settings"].items()},
            None
            if sources is None
            else {
                str(key): SourceState(str(state["id"]), int(state["version"]))
                for key, state in sources.items()
            },
            {str(key): str(value) for key, value in body["others"].items()},
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return Issue(IssueType.CHANGE_SET_MISSING, "the last refresh's record can't be read")


def newest_update(table: Place, pipeline: str, flow: str) -> str | None:
    """Which update made the newest refresh of a view, None where its log does not say."""
    for version in reversed(commit_versions(table)):
        try:
            head = commit_head(commit_file(table, version))
        except (OSError, ValueError):
            return None
        if head.metadata.get("pipeline") == pipeline and head.metadata.get("flow") == flow:
            update = head.metadata.get("update")
            return str(update) if update is not None else None
    return None


def foreign_change(table: Place, pipeline: str, flow: str) -> int | None:
    """The version of a commit that changed a view's rows after its own flow's newest one; None where there is none.

    A table whose whole log has no commit of the flow was written by something else from the beginning: that is no change.
    """
    versions = commit_versions(table)
    foreign: int | None = None
    for version in reversed(versions):
        file = commit_file(table, version)
        try:
            metadata = commit_head(file).metadata
            if metadata.get("pipeline") == pipeline and metadata.get("flow") == flow:
                return foreign
            actions = read_actions(file) if foreign is None else []
        except (OSError, ValueError):
            return foreign
        if data_files(actions, "add") or data_files(actions, "remove"):
            foreign = version
    return foreign if versions and versions[0] > 0 else None


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
