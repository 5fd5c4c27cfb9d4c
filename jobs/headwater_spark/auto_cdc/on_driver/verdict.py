"""What the fast path answers: the batch is written, or why MERGE has to write it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headwater_spark.auto_cdc.open_target import AboutKeys
from headwater_spark.delta_writes.batch_transaction import BatchTransaction

# Who wrote a batch, as its commit and the event log name it.
DRIVER_REWRITE, MERGE = "driver_rewrite", "merge"
BY_COLUMN = "columns are decided one by one"


@dataclass(frozen=True)
class Decided:
    """What a batch changes, after what is to be remembered of it has been.

    ``changes``: Arrow rows with the target's columns, each row whole; where ``__hw_gone`` is true, the row goes.
    """

    changes: Any
    transaction: BatchTransaction


@dataclass(frozen=True)
class Done:
    """The batch is committed."""


@dataclass(frozen=True)
class Declined:
    """Nothing is committed. ``reason``: a few words that do not differ from batch to batch.

    ``about``: the target's rows about the batch's keys, where they have been looked up. ``decided``: where the batch was
    decided before it was declined; it must not be decided again, since the side table has it.
    """

    reason: str
    about: AboutKeys | None = None
    decided: Decided | None = None


def engine(declined: Declined | None) -> dict[str, str]:
    """Who writes a batch, for the metadata of its commit; ``declined``: why not the fast path."""
    if declined is None:
        return {"engine": DRIVER_REWRITE}
    return {"engine": MERGE, "engine_reason": declined.reason}
