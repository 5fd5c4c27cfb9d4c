"""What a flow's rows do to the rows that its table has: one kind answers for all. Decision 0156."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

QueryMode = Literal["append", "update", "complete"]


class OutputKind(StrEnum):
    """A flow's kind, spelled as in the manifest."""

    APPEND = "append"
    # The changed rows of an aggregation, merged by its grouping keys.
    UPDATE = "update"
    # An aggregation whole: each batch replaces the table.
    COMPLETE = "complete"
    # Rows give way to those of the same keys and a higher sequence.
    REPLACE = "replace"
    # Change events, merged by key and sequence (AUTO CDC).
    CHANGES = "changes"
    # Whole states of a source, compared with the table (AUTO CDC).
    SNAPSHOT = "snapshot"

    @property
    def only_adds_rows(self) -> bool:
        """Whether the table holds each row that was ever written; else a row may be changed or taken away later."""
        return self is OutputKind.APPEND

    @property
    def merges_by_key(self) -> bool:
        """Whether rows are merged into a table, which must be there for it."""
        return self not in (OutputKind.APPEND, OutputKind.COMPLETE)

    @property
    def is_aggregation(self) -> bool:
        """Whether the table is kept equal to a running aggregation."""
        return self in (OutputKind.UPDATE, OutputKind.COMPLETE)

    @property
    def keeps_newest(self) -> bool:
        """Whether the flow itself says which row of a key stays: what comes twice changes nothing."""
        return self in (OutputKind.REPLACE, OutputKind.CHANGES)

    @property
    def query_mode(self) -> QueryMode:
        """Spark's output mode of the query."""
        if self is OutputKind.UPDATE:
            return "update"
        return "complete" if self is OutputKind.COMPLETE else "append"

    @property
    def event_log_type(self) -> str:
        """Lakeflow's word for it in a ``flow_definition``."""
        words = {
            OutputKind.APPEND: "APPEND",
            OutputKind.COMPLETE: "COMPLETE",
            OutputKind.SNAPSHOT: "SNAPSHOT_CHANGE",
        }
        return words.get(self, "CHANGE")
