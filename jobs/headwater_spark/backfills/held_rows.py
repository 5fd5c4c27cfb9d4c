"""Quarantined rows of a backfilled range: those of the backfill are added, those of the live stream are discarded.

Decision 0264.
"""

from __future__ import annotations

from dataclasses import replace

from delta.tables import DeltaTable
from pyspark.errors import AnalysisException
from pyspark.sql import Column
from pyspark.sql import functions as F

from headwater.backfills.backfill_range import BackfillMode
from headwater.delta_log.table_history import table_exists
from headwater.quarantine import columns as c
from headwater.quarantine.columns import RowStatus
from headwater.quarantine.table import literal
from headwater_spark.backfills.range_rows import RangeRows
from headwater_spark.backfills.table_plan import TablePlan
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.execution.update_context import UpdateContext
from headwater_spark.quarantine.quarantine_table import QuarantineTable

# No live epoch has this number, so no batch of the stream mistakes the rows of a backfill for its own.
BACKFILL_EPOCH = -1


def hold_rows(plan: TablePlan, part: RangeRows, transaction: BatchTransaction) -> None:
    """Quarantine rows of the range that break a rule, once, before the table's commit.

    Args:
        plan: of the table.
        part: the rows of one of its flows, judged.
        transaction: what the table's commit will have. Rows that are added, and replace none, are held under it, once for all attempts.
    """
    quarantine = part.run.quarantine(BACKFILL_EPOCH)
    if quarantine is None:
        return
    context = part.run.context
    context.check_lease()
    if plan.mode is BackfillMode.REPLACE_WHERE:
        if table_exists(quarantine.path):
            _discard_previous(context, plan, quarantine)
        # Each attempt discards what those before it have added, so it has to add its own; and so has each flow of the table.
        own = f"{transaction.application}.{quarantine.flow}.{context.update_id}"
        transaction = replace(transaction, application=own)
    if part.quality.quarantined:
        quarantine.hold(part.judged, transaction)


def _discard_previous(context: UpdateContext, plan: TablePlan, quarantine: QuarantineTable) -> None:
    """Discard the rows of the range that were held before the backfill: they have been judged again."""
    table = DeltaTable.forPath(context.spark, str(quarantine.path))
    assert plan.row_condition is not None
    try:
        table.toDF().where(plan.row_condition)
    except AnalysisException:
        return  # the quarantine has the time of no held row
    previous = (
        f"{c.FLOW} = {literal(quarantine.flow)} AND {c.STATUS} = {literal(RowStatus.HELD)} AND {plan.row_condition}"
        f" AND {c.UPDATE_ID} <> {literal(context.update_id)}"
    )
    marks: dict[str, str | Column] = {
        c.STATUS: F.lit(str(RowStatus.DISCARDED)),
        c.STATUS_AT: F.current_timestamp(),
        c.STATUS_REASON: F.lit(f"judged again by the backfill {context.update_id}"),
    }
    table.update(previous, marks)
