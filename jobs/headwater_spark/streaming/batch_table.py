"""Tables as functions of ``foreachBatch`` write them: each batch once, however often it comes."""

from __future__ import annotations

import re
from pathlib import Path

from pyspark.sql import DataFrame

from headwater.errors import UsageError

_QUERY_ID = "sql.streaming.queryId"
_PATH = re.compile(r"delta\.`(?P<path>[^`]+)`", re.IGNORECASE)


def append_once(rows: DataFrame, batch_id: int, table: str, partition_by: tuple[str, ...] = ()) -> None:
    """Append a batch to a Delta table (made where there is none), unless the table has it.

    Delta remembers the query's id with the number of its newest batch. The id is that of the checkpoint, so a new checkpoint
    begins to count anew; a name that stays the same would have Delta pass over the batches of a new one.
    """
    query_id = rows.sparkSession.sparkContext.getLocalProperty(_QUERY_ID)
    if not query_id:
        raise UsageError(
            "The batch is not that of a stream.", remedy="Give the function to writeStream.foreachBatch."
        )
    writer = rows.write.format("delta").mode("append").option("mergeSchema", "true")
    writer = writer.option("txnAppId", f"{query_id}/{table}").option("txnVersion", batch_id)
    if partition_by:
        writer = writer.partitionBy(*partition_by)
    path = _PATH.fullmatch(table)
    if path is not None:
        writer.save(path["path"])
    else:
        writer.saveAsTable(table)


def refuse_two_checkpoints(checkpoint_location: str, names: tuple[str, ...]) -> None:
    """Raise UsageError where the folder holds checkpoints of the form with several queries, each with a position of its own."""
    left = [name for name in names if (Path(checkpoint_location) / name / "offsets").is_dir()]
    if left:
        raise UsageError(
            f"The checkpoint holds those of other queries: {', '.join(left)}. One query can't go on from several positions.",
            where=checkpoint_location,
            remedy="Stop those queries, let both reach the end, and give another folder with starting offsets behind theirs.",
        )
