"""The commits of a Delta table, read one by one. Nothing here opens the table: only its log folder is looked at."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from headwater.files.json_lines import byte_lines, read_lines
from headwater.storage.delta_tables import copy_of_commit
from headwater.storage.object_path import ObjectPath
from headwater.storage.place import Place

Action: TypeAlias = dict[str, Any]


def log_folder(table: Place) -> Place:
    """The folder of a table's log."""
    return table / "_delta_log"


def commit_file(table: Place, version: int) -> Place:
    """The file of a commit, whether it is there or not."""
    return table.joinpath("_delta_log", f"{version:020d}.json")


def is_commit(name: str) -> bool:
    """Whether a file of a log is a commit; checkpoints, checksums and files being written are none."""
    return len(name) == 25 and name.endswith(".json") and name[:20].isdigit()


def checksums_of(commit: Place) -> str:
    """The names of the files that hold checksums of a commit, for a message: Delta's own, and on a disk Hadoop's."""
    own = f"{commit.stem}.crc"
    return own if isinstance(commit, ObjectPath) else f".{commit.name}.crc, {own}"


def commit_versions(table: Place) -> list[int]:
    """The versions whose commits are in the log, ascending; empty where there is no log."""
    try:
        names = [path.name for path in log_folder(table).iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(int(name[:20]) for name in names if is_commit(name))


def newest_version(table: Place) -> int | None:
    """The version of the newest commit, None where there is none: a folder is listed, no file is opened."""
    return max(commit_versions(table), default=None)


def read_actions(file: Place) -> list[Action]:
    """All actions of a commit.

    Raises:
        FileNotFoundError: the commit is gone (logs are cleaned after a time), or not there yet.
        ValueError: it is damaged (``json.JSONDecodeError`` and ``UnicodeDecodeError`` are such).
    """
    actions = [json.loads(line) for line in read_lines(copy_of_commit(file)) if line.strip()]
    if not all(isinstance(action, dict) for action in actions):
        raise ValueError(f"a line of {file.name} is not a JSON object")
    return actions


def commit_info(actions: Iterable[Mapping[str, Any]]) -> Action:
    """What the writer said of its commit; empty where it said nothing."""
    return next((dict(action["commitInfo"]) for action in actions if "commitInfo" in action), {})


def commit_seconds(info: Mapping[str, Any], file: Place) -> float:
    """When a commit was made, in seconds since 1970: by the table's clock, the writer's, or the file's."""
    millis = info.get("inCommitTimestamp") or info.get("timestamp")
    return float(millis) / 1000 if millis else file.stat().st_mtime


def written_at(info: Mapping[str, Any]) -> int | None:
    """When a commit was made, as it says itself (milliseconds since 1970); None where it does not."""
    millis = info.get("inCommitTimestamp") or info.get("timestamp")
    return millis if isinstance(millis, int) else None


def data_files(actions: Iterable[Mapping[str, Any]], kind: str) -> list[Action]:
    """The ``add`` or ``remove`` actions that change rows; those of optimize only move them."""
    return [action[kind] for action in actions if kind in action and action[kind].get("dataChange", True)]


@dataclass(frozen=True)
class CommitHead:
    """What a commit says besides its files. ``transactions``: the last batch by application id."""

    info: Action = field(default_factory=dict)
    transactions: dict[str, int] = field(default_factory=dict)

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The user metadata of the commit, a JSON object; empty where there is none, or something else."""
        try:
            metadata = json.loads(self.info.get("userMetadata") or "{}")
        except json.JSONDecodeError:
            return {}
        return metadata if isinstance(metadata, dict) else {}


def commit_head(file: Place) -> CommitHead:
    """Read a commit's head; the actions of files, nearly all of a commit, are not looked into.

    Raises:
        FileNotFoundError: the commit is gone (logs are cleaned after a time), or not there yet.
        ValueError: it is damaged.
    """
    info: Action = {}
    transactions: dict[str, int] = {}
    for line in byte_lines(copy_of_commit(file)):
        if line.startswith(b'{"commitInfo"'):
            info = json.loads(line)["commitInfo"]
        elif line.startswith(b'{"txn"'):
            action = json.loads(line)["txn"]
            transactions[str(action["appId"])] = int(action["version"])
    return CommitHead(info, transactions)


def commit_written(table: Place, version: int) -> int | None:
    """As ``written_at``, of a version; None as well where its commit is gone."""
    try:
        return written_at(commit_head(commit_file(table, version)).info)
    except (OSError, ValueError):
        return None
