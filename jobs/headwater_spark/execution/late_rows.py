"""Rows that the live stream wrote while a backfill computed: replacing the range took them along, and they are put back.

A backfill reads its sources up to where the live stream stood at one version of the table. What the stream wrote between
that version and the one that Delta's transaction began from is in neither. (What it wrote later is left alone by Delta.)

Decision 0111.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from tenacity import retry, retry_if_exception, stop_after_attempt, wait_random_exponential

from headwater.checkpoints.pending_replacement import PendingReplacement, pending_replacements
from headwater.delta_log.commits import commit_file, commit_head
from headwater.delta_log.table_history import has_transaction
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.delta_writes.delta_append import DeltaAppend
from headwater_spark.delta_writes.sink_commits import SinkCommits
from headwater_spark.execution.added_rows import rows_of_commit
from headwater_spark.execution.failures import causes_of_error
from headwater_spark.messages.known_exceptions import CONFLICT, shows


def conflicts(error: BaseException) -> bool:
    """Whether Delta says that another writer came between: the same rows may be tried again."""
    return shows(causes_of_error(error), CONFLICT)


try_again = retry(
    retry=retry_if_exception(conflicts),
    stop=stop_after_attempt(8),
    wait=wait_random_exponential(multiplier=0.2, max=10),
    reraise=True,
)


@try_again
def finish_replacements(spark: SparkSession, state_folder: Path, dataset: str, table: Path) -> None:
    """Put back what replaced ranges of a table still miss, since the backfill was killed.

    Two at once do it once: each commit has an id of its own. What is not committed is left to its backfill.
    """
    for pending in pending_replacements(state_folder, dataset):
        with pending.abandoned(state_folder) as abandoned:
            # In this order: between a look at the table and the end of its backfill, the backfill may have committed.
            committed = has_transaction(table, pending.application, 0)
            if abandoned and not committed:
                pending.cross_out(state_folder)
        if committed:
            put_back_late_rows(spark, state_folder, table, pending)


def put_back_late_rows(
    spark: SparkSession, state_folder: Path, table: Path, pending: PendingReplacement
) -> None:
    """Append again what the streams wrote to the range in between, each batch once, and cross the replacement out."""
    first = min(pending.known.values(), default=None)
    replaced = None if first is None else SinkCommits(table, pending.application, since=first).find(0)
    if first is not None and replaced is not None:
        _put_back(spark, table, pending, first, replaced.version)
    pending.cross_out(state_folder)


def _put_back(
    spark: SparkSession, table: Path, pending: PendingReplacement, first: int, replaced: int
) -> None:
    known = pending.known
    began = int(commit_head(commit_file(table, replaced)).info.get("readVersion", replaced - 1))
    for version in range(first + 1, began + 1):
        if not any(
            known.get(name, began) < version for name in commit_head(commit_file(table, version)).transactions
        ):
            continue
        late = BatchTransaction(f"{pending.application}-late-{version}", 0, pending.user_metadata)
        if not has_transaction(table, late.application, 0):
            DeltaAppend(table).write(rows_of_commit(spark, table, version).where(pending.condition), late)
