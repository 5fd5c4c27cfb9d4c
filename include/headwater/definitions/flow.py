from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from headwater.definitions.change_flow import ChangeFlow
from headwater.definitions.output_kind import OutputKind
from headwater.definitions.snapshot_flow import SnapshotFlow
from headwater.definitions.source_location import SourceLocation


class FlowKind(StrEnum):
    """What a flow does with the rows of its query."""

    # The query of a dataset's own function: appended, merged or recomputed, as the query allows.
    DEFAULT = "default"
    APPEND = "append"
    # Changed rows of an aggregation, handed to a sink.
    UPDATE = "update"
    # All rows of a key give way to those of a higher sequence.
    REPLACE = "replace"
    # Change events, merged by key (AUTO CDC).
    CHANGES = "changes"
    # Whole states of a source, compared with the target (AUTO CDC from snapshots).
    SNAPSHOTS = "snapshots"


@dataclass(frozen=True)
class Replacement:
    """Which rows give way: those with the same ``keys`` and a lower ``sequence``."""

    keys: tuple[str, ...]
    sequence: str


@dataclass(frozen=True)
class Flow:
    """A query that fills a dataset. ``function`` takes no arguments and returns a DataFrame.

    ``replace_where``: a condition (SQL text or a Column): an update recomputes the rows that meet it and keeps the others.
    ``depends_on``: flows and datasets that it waits for in an update besides those that it reads.
    ``import_checkpoint``: the folder of a stream's checkpoint that it goes on from at its first start.
    """

    name: str
    target: str
    function: Callable[[], Any]
    location: SourceLocation | None = None
    once: bool = False
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    kind: FlowKind = FlowKind.DEFAULT
    replacement: Replacement | None = None
    changes: ChangeFlow | None = None
    snapshots: SnapshotFlow | None = None
    replace_where: Any = None
    depends_on: tuple[str, ...] = ()
    import_checkpoint: str | None = None

    @property
    def declared_output(self) -> OutputKind:
        """What the declaration says of its rows; APPEND where the query decides."""
        if self.snapshots is not None:
            return OutputKind.SNAPSHOT
        if self.changes is not None:
            return OutputKind.CHANGES
        return OutputKind.APPEND if self.replacement is None else OutputKind.REPLACE
