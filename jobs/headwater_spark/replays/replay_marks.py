"""Marks on held rows from which a killed replay is resolved: docs/expectations.md, "Replay".

Rows and files are marked before the table's commit, and after. A file's rows that are to be held are in the quarantine as
pending before that commit. Whether it happened is known from the table: each flow of a replay has its own transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from headwater.checkpoints.flow_identity import FlowIdentity
from headwater.delta_log.table_history import has_transaction
from headwater.quarantine import columns as c
from headwater.quarantine.columns import UNREADABLE_FILE, RowStatus
from headwater.quarantine.table import literal
from headwater.storage.place import Place
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

    def mark(self, ids: DataFrame, status: RowStatus, reason: str | None = None) -> None:
        """Give rows a status. ``ids``: a frame with the column ``HELD_ID``."""
        values = {**_marks(F.lit(str(status))), c.STATUS_REASON: F.lit(reason).cast("string"),
                  c.REPLAY_ID: F.lit(self.replay_id)}  # fmt: skip
        # The frame may belong to another session; the merge runs in this one.
        ids = DataFrame(ids._jdf, self.spark)  # noqa: SLF001
        table = DeltaTable.forPath(self.spark, str(self.path)).alias("q")
        merge = table.merge(ids.alias("i"), f"q.{c.ID} = i.{HELD_ID}")
        merge.whenMatchedUpdate(set=values).execute()

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

    def in_table(self, table: Place) -> bool:
        """Whether the table has this commit, also under the id of earlier versions, which all flows of a replay shared."""
        former = FlowIdentity(self.pipeline, f"replay.{self.replay_id}").application(0)
        return any(has_transaction(table, name, 0) for name in (self.application, former))

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
        if marks.in_table(table):
            marks.finish()
        else:
            marks.take_back()


def _marks(status: Column) -> dict[str, str | Column]:
    return {c.STATUS: status, c.STATUS_AT: F.current_timestamp()}
