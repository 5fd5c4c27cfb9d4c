"""Which snapshots a table has: the user's versions, recorded so that each is applied once across any crash.

Before a snapshot is merged, its number and version are recorded as intended; the table's commit carries the number
as its transaction. After a crash the table shows whether the intended merge has happened.

Decision 0071.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from headwater.checkpoints.flow_identity import FlowIdentity
from headwater.checkpoints.record_files import recorded
from headwater.delta_log.commits import commit_file, commit_head, commit_versions
from headwater.delta_log.table_history import commits_of
from headwater.files.atomic_files import write_atomically
from headwater.storage.place import Place

# Of a commit's user metadata: the version of the snapshot that it made.
VERSION_KEY = "snapshot_version"


@dataclass(frozen=True)
class SnapshotPosition:
    """Where a flow stands. ``number`` counts its snapshots from 0, ``version`` is the user's; -1 and None before the first.

    ``intended``: the next one, begun and not known to be done.
    """

    number: int = -1
    version: Any = None
    intended: tuple[int, Any] | None = None


def _of_file(data: Mapping[str, Any]) -> tuple[str, SnapshotPosition]:
    """The id under which an epoch commits, and its position."""
    intended = data.get("intended")
    position = SnapshotPosition(
        int(data["number"]),
        decoded(data["version"]),
        (int(intended["number"]), decoded(intended["version"])) if intended else None,
    )
    return str(data["application"]), position


@dataclass(frozen=True)
class SnapshotVersions:
    """The position of one flow's epoch, in a file.

    ``application``: the id under which the epoch commits; with an empty one the file can only be read.
    """

    path: Place
    application: str

    def read(self) -> SnapshotPosition | None:
        """The position, None where none was written for this epoch."""
        record = recorded(
            self.path,
            _of_file,
            what="The file with the versions of the snapshots that a table has",
            unknown="which snapshots a table has",
            remedy="Restore it from a backup. Or refresh the table in full: snapshots are asked for from the first then.",
        )
        if record is None:
            return None
        application, position = record
        # Without an id: whichever epoch the file is of.
        return position if not self.application or application == self.application else None

    def intend(self, position: SnapshotPosition, version: Any) -> SnapshotPosition:
        """Write down that a snapshot is about to be merged."""
        return self.write(replace(position, intended=(position.number + 1, version)))

    def done(self, position: SnapshotPosition) -> SnapshotPosition:
        """Write down that the intended snapshot is in the table."""
        assert position.intended is not None
        return self.write(SnapshotPosition(*position.intended))

    def in_table(self, table: Place, identity: FlowIdentity, epoch: int) -> SnapshotPosition | None:
        """The position according to the table's own log, for where the file is lost; None where the log has none."""
        positions = [
            (int(metadata["batch"]), metadata[VERSION_KEY])
            for metadata in commits_of(table, *identity.names)
            if metadata.get("epoch") == epoch and VERSION_KEY in metadata
        ]
        return _position(max(positions, key=lambda pair: pair[0])) if positions else None

    def write(self, position: SnapshotPosition) -> SnapshotPosition:
        """Write a position down, and give it."""
        intended = position.intended
        data = {
            "application": self.application,
            "number": position.number,
            "version": encoded(position.version),
            "intended": {"number": intended[0], "version": encoded(intended[1])} if intended else None,
        }
        write_atomically(self.path, json.dumps(data, indent=1) + "\n")
        return position


def newest_version_in(table: Place) -> Any:
    """The version of the newest snapshot by the table's own log, of whichever epoch; None where no commit that is left names one."""
    for number in reversed(commit_versions(table)):
        stored = commit_head(commit_file(table, number)).metadata.get(VERSION_KEY)
        if stored is not None:
            return decoded(stored)
    return None


def _position(numbered: tuple[int, Any]) -> SnapshotPosition:
    return SnapshotPosition(numbered[0], decoded(numbered[1]))


def encoded(version: Any) -> Mapping[str, Any] | None:
    """A version as JSON; raises TypeError for what is none: a NULL, a boolean, a list, anything without an order."""
    if version is None:
        return None
    if isinstance(version, bool) or not isinstance(version, int | float | str | datetime | date | Decimal):
        message = f"{type(version).__name__} is not a type for versions"
        raise TypeError(message)
    kind = type(version).__name__
    if isinstance(version, datetime):
        return {"type": "datetime", "value": version.astimezone(UTC).isoformat()}
    if isinstance(version, date):
        return {"type": "date", "value": version.isoformat()}
    return {"type": kind, "value": str(version) if isinstance(version, Decimal) else version}


def decoded(stored: Mapping[str, Any] | None) -> Any:
    """The version that ``encoded`` was given."""
    if stored is None:
        return None
    value = stored["value"]
    readers: dict[str, Callable[[str], Any]] = {
        "datetime": datetime.fromisoformat,
        "date": date.fromisoformat,
        "Decimal": Decimal,
    }
    read = readers.get(stored["type"])
    return read(value) if read else value
