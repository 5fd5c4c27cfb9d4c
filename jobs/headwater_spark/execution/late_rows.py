"""Rows that the live stream wrote while a backfill computed: replacing the range removes them, and they are put back.

A backfill reads its sources up to the live stream's position at one version of the table. What the stream wrote between
that version and the one that Delta's transaction began from is in neither. (What it wrote later is not replaced by Delta.)

Decision 0111.
"""

from __future__ import annotations

from pyspark.sql import SparkSession
from tenacity import retry, retry_if_exception, stop_after_attempt, wait_random_exponential

from headwater.checkpoints.pending_replacement import PendingReplacement, pending_replacements
from headwater.delta_log.commits import commit_file, commit_head
from headwater.delta_log.table_history import has_transaction
from headwater.storage.place import Place
from headwater_spark.delta_writes.batch_commits import BatchCommits
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.delta_writes.delta_append import DeltaAppend
from headwater_spark.execution.added_rows import rows_of_commit
from headwater_spark.execution.failures import causes_of_error
from headwater_spark.messages.known_exceptions import CONFLICT, shows


def conflicts(error: BaseException) -> bool:
    """Whether Delta reports a conflict with another writer: writing the same rows may be retried."""
    return shows(causes_of_error(error), CONFLICT)


retry_conflicts = retry(
    retry=retry_if_exception(conflicts),
    stop=stop_after_attempt(8),
    wait=wait_random_exponential(multiplier=0.2, max=10),
    reraise=True,
)


@retry_conflicts
def finish_replacements(spark: SparkSession, state_folder: Place, dataset: str, table: Place) -> None:
    """Put back the late rows of replaced ranges whose backfill was killed.

    Two processes at once do it once: each commit has its own id. An uncommitted replacement is left to its backfill.
    """
    for pending in pending_replacements(state_folder, dataset):
        with pending.abandoned(state_folder) as abandoned:
            # In this order: a live backfill may commit after it was checked.
            committed = has_transaction(table, pending.application, 0)
            if abandoned and not committed:
                pending.cross_out(state_folder)
        if committed:
            put_back_late_rows(spark, state_folder, table, pending)


def put_back_late_rows(
    spark: SparkSession, state_folder: Place, table: Place, pending: PendingReplacement
) -> None:
    """Append again what the streams wrote to the range meanwhile, each batch once, and close the replacement."""
    first = min(pending.known.values(), default=None)
    replaced = None if first is None else BatchCommits(table, pending.application, since=first).find(0)
    if (
        first is not None
        and replaced is not None
        and not pending.was_made_by_another(state_folder, replaced.metadata)
    ):
        _put_back(spark, table, pending, first, replaced.version)
    pending.cross_out(state_folder)


def _put_back(
    spark: SparkSession, table: Place, pending: PendingReplacement, first: int, replaced: int
) -> None:
    base = int(commit_head(commit_file(table, replaced)).info.get("readVersion", replaced - 1))
    for version in range(first + 1, base + 1):
        writers = commit_head(commit_file(table, version)).transactions
        if not any(pending.known.get(name, base) < version for name in writers):
            continue
        late = BatchTransaction(f"{pending.application}-late-{version}", 0, pending.user_metadata)
        if not has_transaction(table, late.application, 0):
            DeltaAppend(table).write(rows_of_commit(spark, table, version).where(pending.condition), late)
