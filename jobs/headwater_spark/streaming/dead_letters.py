"""Rows that can't be used go to a table of their own, in the same pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headwater_spark.streaming.batch_table import append_once, refuse_two_checkpoints

REQUIRED = ("event_id", "event_timestamp")
REASON = "error_reason"
_CHECKPOINTS_OF_TWO_QUERIES = ("valid", "dlq")


def process_stream_with_dlq(
    streaming_df: DataFrame,
    checkpoint_location: str,
    target_table: str,
    dlq_table: str,
    *,
    required: tuple[str, ...] = REQUIRED,
    valid: str | None = None,
    trigger: Mapping[str, Any] | None = None,
) -> None:
    """Write the valid rows of a stream to one table and the others, with the reason, to another; returns when the stream ends.

    The traps of the form in guides: two queries read the source twice, each from a position of its own; only one of them is
    awaited, so the other may die unseen; and a row for which the condition is NULL is in both tables or in neither. Here one
    query with one checkpoint writes both, NULL is invalid, and a batch that comes again is written to neither twice.

    In a pipeline: ``dp.expect_all_or_quarantine``.

    Args:
        streaming_df: the rows.
        checkpoint_location: the folder of the query's checkpoint.
        target_table: the table of valid rows, by name or as ``delta.`/path` ``; it is made where there is none.
        dlq_table: the table of the others; it has the column ``error_reason`` more.
        required: columns that must not be NULL.
        valid: a SQL condition that valid rows meet, too.
        trigger: the arguments of ``writeStream.trigger``; by default a batch follows the other.

    Raises:
        StreamingQueryException: the stream failed.
        UsageError: the checkpoint holds those of the form with two queries.

    """
    refuse_two_checkpoints(checkpoint_location, _CHECKPOINTS_OF_TWO_QUERIES)
    split = SplitBatch(target_table, dlq_table, reason_of(required, valid))
    writer = streaming_df.writeStream.foreachBatch(split).option("checkpointLocation", checkpoint_location)
    if trigger is not None:
        writer = writer.trigger(**trigger)
    writer.start().awaitTermination()


def reason_of(required: tuple[str, ...], valid: str | None) -> Column:
    """Why a row is invalid, as text; NULL of a valid one."""
    missing = F.array_compact(F.array(*(F.when(F.col(name).isNull(), F.lit(name)) for name in required)))
    reason = F.when(
        F.size(missing) > 0,
        F.concat(F.lit("Missing required fields: "), F.concat_ws(", ", missing)),
    )
    if valid is None:
        return reason
    return reason.when(~F.coalesce(F.expr(valid), F.lit(False)), F.lit(f"Not met: {valid}"))


@dataclass(frozen=True)
class SplitBatch:
    """A function for ``foreachBatch``: rows without a reason go to one table, those with one to the other.

    Args:
        target_table: the table of valid rows.
        dlq_table: the table of the others.
        reason: why a row is invalid; NULL of a valid one.
        partition_by: columns that a new target is partitioned by.
        not_in_target: columns that only the other table has.
        in_dlq: the columns of the other table beside the reason; all of them where it is empty.

    """

    target_table: str
    dlq_table: str
    reason: Column
    partition_by: tuple[str, ...] = ()
    not_in_target: tuple[str, ...] = ()
    in_dlq: tuple[str, ...] = ()

    def __call__(self, batch_df: DataFrame, batch_id: int) -> None:
        """Write one batch to both."""
        judged = batch_df.withColumn(REASON, self.reason).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            valid = judged.where(F.col(REASON).isNull()).drop(REASON, *self.not_in_target)
            append_once(valid, batch_id, self.target_table, self.partition_by)
            others = judged.where(F.col(REASON).isNotNull())
            append_once(
                others.select(*self.in_dlq, REASON) if self.in_dlq else others, batch_id, self.dlq_table
            )
        finally:
            judged.unpersist()
