"""The one door of the fast path: a batch is written from the driver, or a reason says why MERGE has to do it.

Decision 0142.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headwater_spark.auto_cdc.change_events import ChangeBatch
from headwater_spark.auto_cdc.on_driver.look_up import FoundRows
from headwater_spark.auto_cdc.on_driver.rewrite import reason_against, rewrite
from headwater_spark.auto_cdc.on_driver.verdict import BY_COLUMN, Decided, Declined, Done
from headwater_spark.auto_cdc.open_target import OpenTarget

Decide = Callable[[FoundRows], Decided]


def try_on_driver(
    batch: ChangeBatch, target: OpenTarget, identity: Sequence[str], decide: Decide
) -> Done | Declined:
    """Write a batch without a MERGE, where that can be: look up its rows, decide, put the changes into their files.

    Args:
        identity: the target's columns that tell which row is meant.
        decide: gives the changes over the rows that were looked up, and remembers what is to be. Called at most once.

    Returns:
        Declined where nothing was committed to the target. What was decided comes with it, for MERGE to write.
    """
    columns = batch.columns
    if batch.local is None:
        return Declined(batch.not_local)
    if columns.truncate is not None:
        return Declined("the flow has truncates")
    if columns.by_column:
        return Declined(BY_COLUMN)
    about = target.about(batch)
    found = about.found
    if isinstance(found, str):
        return Declined(found, about)
    against = reason_against(target, found, identity, columns.target_schema)
    if against is not None:
        return Declined(against, about)
    decided = decide(found)
    against = rewrite(target, found, decided.changes, identity, decided.transaction)
    return Done() if against is None else Declined(against, about, decided)
