"""The entry of the fast path: a batch is written from the driver, or a reason says why MERGE has to do it.

Decision 0142.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headwater_spark.auto_cdc.change_events import ChangeBatch
from headwater_spark.auto_cdc.on_driver.look_up import MatchingRows
from headwater_spark.auto_cdc.on_driver.rewrite import reason_against, rewrite
from headwater_spark.auto_cdc.on_driver.verdict import BY_COLUMN, Decided, Declined, Done
from headwater_spark.auto_cdc.open_target import OpenTarget

Decide = Callable[[MatchingRows], Decided]


def try_on_driver(
    batch: ChangeBatch, target: OpenTarget, identity: Sequence[str], decide: Decide
) -> Done | Declined:
    """Write a batch without a MERGE if possible: look up its rows, decide, and rewrite their files.

    Args:
        identity: the target's columns that identify a row.
        decide: computes the changes to the rows that were looked up, and updates the side table. Called at most once.

    Returns:
        Declined where nothing was committed to the target; it has the decided changes, if any, for MERGE to write.
    """
    columns = batch.columns
    if batch.local is None:
        return Declined(batch.not_local)
    if columns.truncate is not None:
        return Declined("the flow has truncates")
    if columns.by_column:
        return Declined(BY_COLUMN)
    target_rows = target.rows_about(batch)
    matches = target_rows.matches
    if isinstance(matches, str):
        return Declined(matches, target_rows)
    obstacle = reason_against(target, matches, identity, columns.target_schema)
    if obstacle is not None:
        return Declined(obstacle, target_rows)
    decided = decide(matches)
    obstacle = rewrite(target, matches, decided.changes, identity, decided.transaction)
    return Done() if obstacle is None else Declined(obstacle, target_rows, decided)
