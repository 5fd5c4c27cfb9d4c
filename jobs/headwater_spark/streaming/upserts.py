"""Changes merged into a table, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from headwater.errors import UsageError
from headwater_spark.plans.names import quoted
from headwater_spark.plans.partition_texts import losing_texts, without_lost_texts

_DELETED = "_headwater_deleted"
_PLACE = "_headwater_place"


def upsert_changes(
    target: str,
    keys: Sequence[str],
    *,
    sequence_by: str | None = None,
    apply_as_deletes: str = "operation = 'DELETE'",
    except_column_list: Sequence[str] = ("operation",),
) -> Callable[[DataFrame, int], None]:
    """A function for ``foreachBatch`` that merges change events into a Delta table: one row per key.

    The traps of the form in guides: a delete of a key that the table does not have is inserted as a row; two events of one key
    in a batch are inserted both, or end the merge; and an older event that comes later overwrites a newer row. Here an unknown
    delete does nothing, of each key the newest event of a batch counts, and with ``sequence_by`` among the table's columns an
    older event is passed over. A batch that comes again changes nothing.

    A key with a text that Delta stores as NULL, in a column that the table is partitioned by, fails the batch: it would not be met again.

    What a table can't know: that a key was deleted before an older event of it comes. ``dp.create_auto_cdc_flow`` remembers that.

    Args:
        target: the Delta table, by name or as ``delta.`/path` ``.
        keys: the columns that say which row is meant; NULL is a value.
        sequence_by: the column by which events are ordered.
        apply_as_deletes: a SQL condition that is true of events that delete.
        except_column_list: columns of the events that the table does not have.

    Raises:
        UsageError: there are no keys; from the function it returns: a batch has two events of a key, and nothing orders them.

    """
    if not keys:
        raise UsageError("upsert_changes needs keys.", remedy='Name the columns: keys=["id"].')

    def upsert(batch_df: DataFrame, batch_id: int) -> None:  # noqa: ARG001 - Spark's signature
        table = DeltaTable.forName(batch_df.sparkSession, target)
        events = _one_of_each_key(_with_kept_keys(batch_df, keys, table), keys, sequence_by)
        kept = table.toDF().columns
        columns = [name for name in batch_df.columns if name not in except_column_list]
        values: dict[str, str | Column] = {quoted(name): F.col(quoted("s", name)) for name in columns}
        was, now = (quoted(side, sequence_by or "") for side in "ts")
        newer = f"{was} IS NULL OR {now} >= {was}"
        in_order = f"({newer})" if sequence_by in kept else "true"
        deleted = F.coalesce(F.expr(apply_as_deletes), F.lit(False))
        same = " AND ".join(f"{quoted('t', key)} <=> {quoted('s', key)}" for key in keys)
        (
            table.alias("t")
            .merge(events.withColumn(_DELETED, deleted).alias("s"), same)
            .whenMatchedDelete(condition=f"s.{_DELETED} AND {in_order}")
            .whenMatchedUpdate(condition=f"NOT s.{_DELETED} AND {in_order}", set=values)
            .whenNotMatchedInsert(condition=f"NOT s.{_DELETED}", values=values)
            .execute()
        )

    return upsert


def _with_kept_keys(batch_df: DataFrame, keys: Sequence[str], table: DeltaTable) -> DataFrame:
    """The events, of which one fails whose key the table's partitions would not keep."""
    names = {key.lower() for key in keys}
    kinds = [(field.name, field.dataType) for field in batch_df.schema.fields if field.name.lower() in names]
    if not losing_texts(kinds, names):
        return batch_df
    partitions = table.detail().collect()[0]["partitionColumns"]
    return without_lost_texts(batch_df, losing_texts(kinds, partitions))


def _one_of_each_key(batch_df: DataFrame, keys: Sequence[str], sequence_by: str | None) -> DataFrame:
    by = [F.col(quoted(key)) for key in keys]
    if sequence_by is not None:
        newest_first = Window.partitionBy(*by).orderBy(F.col(quoted(sequence_by)).desc_nulls_last())
        placed = batch_df.withColumn(_PLACE, F.row_number().over(newest_first))
        return placed.where(F.col(_PLACE) == 1).drop(_PLACE)
    twice = batch_df.groupBy(*by).count().where(F.col("count") > 1).limit(1).collect()
    if twice:
        key = ", ".join(f"{name}={twice[0][name]!r}" for name in keys)
        raise UsageError(
            f"A batch has {twice[0]['count']} events of {key}, and nothing says which is the newest.",
            remedy="Give sequence_by, the column that orders them.",
        )
    return batch_df
