"""Marks on held rows by which a replay that was killed is settled: docs/expectations.md, "Replay".

Rows and files are marked before the table's commit, and after. A file's own rows that are held stand in the quarantine as
pending before that commit. Whether it came about the table knows: its transaction is the replay's, of one flow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from headwater.checkpoints.flow_identity import FlowIdentity
from headwater.delta_log.table_history import has_transaction
from headwater.quarantine import columns as c
from headwater.quarantine.columns import UNREADABLE_FILE, RowStatus
from headwater.quarantine.table import literal
from headwater_spark.delta_writes.batch_transaction import application_id
from headwater_spark.replays.replayed_query import HELD_ID

IS_FILE = f"array_contains({c.RULES}, {literal(UNREADABLE_FILE)})"


@dataclass(frozen=True)
class ReplayMarks:
    """Marks in the quarantine at ``path`` of one flow's part in a replay. ``files``: that of its files.

    ``pipeline`` and ``flow``: the names in the flow's commits.
    """

    spark: SparkSession
    path: Path
    pipeline: str
    flow: str
    replay_id: str
    files: bool = False

    @property
    def application(self) -> str:
        """The id under which the table's commit is made; two flows of a replay write two commits."""
        kind = ".files" if self.files else ""
        return application_id(self.pipeline, f"replay.{self.replay_id}.{self.flow}{kind}", 0)

    def mark(self, ids: DataFrame, status: RowStatus, reason: str | None = None) -> None:
        """Give rows a status. ``ids``: a frame with the column ``HELD_ID``."""
        marked = {**_marks(F.lit(str(status))), c.STATUS_REASON: F.lit(reason).cast("string"),
                  c.REPLAY_ID: F.lit(self.replay_id)}  # fmt: skip
        # A frame of the session apart, for a merge of this one.
        here = DataFrame(ids._jdf, self.spark)  # noqa: SLF001
        same = f"q.{c.ID} = i.{HELD_ID}"
        table = DeltaTable.forPath(self.spark, str(self.path)).alias("q")
        table.merge(here.alias("i"), same).whenMatchedUpdate(set=marked).execute()

    def finish(self) -> None:
        """All that was marked is in the table, or held; in one commit."""
        pending = F.col(c.STATUS) == str(RowStatus.PENDING)
        status = F.when(pending, str(RowStatus.HELD)).otherwise(str(RowStatus.REPLAYED))
        DeltaTable.forPath(self.spark, str(self.path)).update(self._mine, _marks(status))

    def take_back(self) -> None:
        """Nothing came into the table: what was marked is held as before."""
        table = DeltaTable.forPath(self.spark, str(self.path))
        if self.files:
            table.delete(f"{c.STATUS} = {literal(RowStatus.PENDING)} AND {self._mine}")
        table.update(self._mine, _marks(F.lit(str(RowStatus.HELD))))

    def in_table(self, table: Path) -> bool:
        """Whether the table has this part's commit; also under the id that replays had before flows had one each."""
        former = application_id(self.pipeline, f"replay.{self.replay_id}", 0)
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
    spark: SparkSession, quarantine: Path, table: Path, written_as: Callable[[str], FlowIdentity]
) -> None:
    """Decide what became of rows and files that a killed replay had marked.

    ``written_as``: the names of the flow whose rows are held under a name.
    """
    rows = spark.read.format("delta").load(str(quarantine))
    rows = rows.where(F.col(c.STATUS).isin(str(RowStatus.REPLAYING), str(RowStatus.PENDING)))
    of_files = (F.col(c.STATUS) == str(RowStatus.PENDING)) | F.expr(IS_FILE)
    for replay_id, flow, files in rows.select(c.REPLAY_ID, c.FLOW, of_files).distinct().collect():
        marks = ReplayMarks(spark, quarantine, *written_as(flow).names, replay_id, files)
        if marks.in_table(table):
            marks.finish()
        else:
            marks.take_back()


def _marks(status: Column) -> dict[str, str | Column]:
    return {c.STATUS: status, c.STATUS_AT: F.current_timestamp()}
