"""The results of the fast path: the batch is written, or why MERGE has to write it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headwater_spark.auto_cdc.open_target import TargetRows
from headwater_spark.delta_writes.batch_transaction import BatchTransaction

# Which engine wrote a batch, in its commit and the event log.
DRIVER_REWRITE, MERGE = "driver_rewrite", "merge"
BY_COLUMN = "columns are decided one by one"


@dataclass(frozen=True)
class Decided:
    """The changes of a batch, once the side table has what must be remembered.

    ``changes``: Arrow rows with all of the target's columns; where ``__hw_removed`` is true, the row is deleted.
    """

    changes: Any
    transaction: BatchTransaction


@dataclass(frozen=True)
class Done:
    """The batch is committed."""


@dataclass(frozen=True)
class Declined:
    """Nothing is committed. ``reason``: a few words, the same for each such batch.

    ``target_rows``: the target's rows about the batch's keys, if they were looked up. ``decided``: set if the batch was
    decided before; it must not be decided again, since the side table already has it.
    """

    reason: str
    target_rows: TargetRows | None = None
    decided: Decided | None = None


def engine(declined: Declined | None) -> dict[str, str]:
    """Which engine writes a batch, for the metadata of its commit; ``declined``: why not the fast path."""
    if declined is None:
        return {"engine": DRIVER_REWRITE}
    return {"engine": MERGE, "engine_reason": declined.reason}
