"""Marks on held rows from which a killed replay is resolved: docs/expectations.md, "Replay".

Rows and files are marked before the table's commit, and after. A file's rows that are to be held are in the quarantine as
pending before that commit. Whether it happened is known from the table: each flow of a replay has its own transaction. Where
it has not happened, its id is retired before the marks are undone: a replay that only stood still can't commit any more.

Decision 0197.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from headwater.checkpoints.flow_identity import FlowIdentity
from headwater.delta_log.table_history import has_transaction, table_exists, transaction_version
from headwater.errors import LeaseLost
from headwater.quarantine import columns as c
from headwater.quarantine.columns import UNREADABLE_FILE, RowStatus
from headwater.quarantine.table import literal
from headwater.storage.place import Place
from headwater_spark.delta_writes.retired_epochs import LAST_BATCH, retire_unwritten
from headwater_spark.replays.replayed_query import HELD_ID

IS_FILE = f"array_contains({c.RULES}, {literal(UNREADABLE_FILE)})"


@dataclass(frozen=True)
class ReplayMarks:
    """One flow's marks of a replay in the quarantine at ``path``. ``files``: for its files, not its rows.

    ``pipeline`` and ``flow``: the names in the flow's commits.
    """

    spark: SparkSession
    path: Place
    pipeline: str
    flow: str
    replay_id: str
    files: bool = False

    @property
    def application(self) -> str:
        """The id of the table's commit; each flow of a replay writes its own."""
        kind = ".files" if self.files else ""
        return FlowIdentity(self.pipeline, f"replay.{self.replay_id}.{self.flow}{kind}").application(0)

    def mark_replaying(self, ids: DataFrame, count: int) -> None:
        """Mark rows that are about to be written; ``count``: how many ``ids`` has, each once.

        Raises:
            LeaseLost: not all of them are held any more; those that are marked are taken back by the next replay.
        """
        if self.mark(ids, RowStatus.REPLAYING) != count:
            raise self._lost("Another process has marked rows of this replay meanwhile")

    def check_written(self, table: Place) -> None:
        """Raise LeaseLost where the table left the rows out, because the next replay had begun."""
        if transaction_version(table, self.application) == LAST_BATCH:
            raise self._lost("Another replay has begun meanwhile")

    def _lost(self, what: str) -> LeaseLost:
        return LeaseLost(
            f"{what}, so the lease was taken from this one: none of the flow's rows were written by it.",
            where=self.path,
            remedy="Run the replay again once nothing else runs; it takes the rows that are still held.",
        )

    def mark(self, ids: DataFrame, status: RowStatus, reason: str | None = None) -> int:
        """Give held rows a status; what is not held any more stays as it is. Returns how many.

        ``ids``: a frame with the column ``HELD_ID``.
        """
        values = {**_marks(F.lit(str(status))), c.STATUS_REASON: F.lit(reason).cast("string"),
                  c.REPLAY_ID: F.lit(self.replay_id)}  # fmt: skip
        # The frame may belong to another session; the merge runs in this one.
        ids = DataFrame(ids._jdf, self.spark)  # noqa: SLF001
        table = DeltaTable.forPath(self.spark, str(self.path)).alias("q")
        merge = table.merge(ids.alias("i"), f"q.{c.ID} = i.{HELD_ID}")
        waits = f"q.{c.STATUS} = {literal(RowStatus.HELD)}"
        counts = merge.whenMatchedUpdate(condition=waits, set=values).execute().first()
        assert counts is not None
        return int(counts["num_updated_rows"])

    def finish(self) -> None:
        """Mark rows that are in the table as replayed, and pending ones as held, in one commit."""
        pending = F.col(c.STATUS) == str(RowStatus.PENDING)
        status = F.when(pending, str(RowStatus.HELD)).otherwise(str(RowStatus.REPLAYED))
        DeltaTable.forPath(self.spark, str(self.path)).update(self._mine, _marks(status))

    def take_back(self) -> None:
        """Undo the marks: nothing was written to the table, and the rows are held as before."""
        table = DeltaTable.forPath(self.spark, str(self.path))
        if self.files:
            table.delete(f"{c.STATUS} = {literal(RowStatus.PENDING)} AND {self._mine}")
        table.update(self._mine, _marks(F.lit(str(RowStatus.HELD))))

    def ended_in(self, table: Place) -> bool:
        """Whether the table has this commit; where it has not, it will not get it any more.

        Earlier versions committed under an id that all flows of a replay shared.
        """
        former = FlowIdentity(self.pipeline, f"replay.{self.replay_id}").application(0)
        if not table_exists(table):
            return False
        return has_transaction(table, former, 0) or not retire_unwritten(self.spark, table, self.application)

    @property
    def _mine(self) -> str:
        pending = literal(RowStatus.PENDING)
        of_files = f"({c.STATUS} = {pending} OR {IS_FILE})"
        return (
            f"{c.STATUS} IN ({literal(RowStatus.REPLAYING)}, {pending}) AND {c.REPLAY_ID} = {literal(self.replay_id)} "
            f"AND {c.FLOW} = {literal(self.flow)} AND {'' if self.files else 'NOT '}{of_files}"
        )


def settle(
    spark: SparkSession, quarantine: Place, table: Place, identity_of: Callable[[str], FlowIdentity]
) -> None:
    """Finish or undo what a killed replay had marked.

    ``identity_of``: gives the names in the commits of the flow whose rows are held under a name.
    """
    rows = spark.read.format("delta").load(str(quarantine))
    rows = rows.where(F.col(c.STATUS).isin(str(RowStatus.REPLAYING), str(RowStatus.PENDING)))
    of_files = (F.col(c.STATUS) == str(RowStatus.PENDING)) | F.expr(IS_FILE)
    for replay_id, flow, files in rows.select(c.REPLAY_ID, c.FLOW, of_files).distinct().collect():
        marks = ReplayMarks(spark, quarantine, *identity_of(flow).names, replay_id, files)
        if marks.ended_in(table):
            marks.finish()
        else:
            marks.take_back()


def _marks(status: Column) -> dict[str, str | Column]:
    return {c.STATUS: status, c.STATUS_AT: F.current_timestamp()}
