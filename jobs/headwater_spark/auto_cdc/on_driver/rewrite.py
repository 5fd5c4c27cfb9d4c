"""Changes that are known row by row are written into the files that hold the rows, without a search for them by MERGE.

It needs a small batch, and a table of which the driver has seen the rows about the batch's keys. Where that is not so, or
anything is not as it was seen, nothing is written, and a MERGE is to do it.

Decision 0077.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StringType, StructType

from headwater_spark.auto_cdc.change_columns import OWN, quoted
from headwater_spark.auto_cdc.on_driver.events import is_told_apart
from headwater_spark.auto_cdc.on_driver.look_up import FoundRows
from headwater_spark.auto_cdc.on_driver.rows import arrow_form, local_frame
from headwater_spark.auto_cdc.on_driver.verdict import engine
from headwater_spark.auto_cdc.open_target import OpenTarget
from headwater_spark.auto_cdc.side_table import GONE
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.delta_writes.file_rewrite import CHANGE_TYPE, RowCounts, file_rewrite
from headwater_spark.plans.schemas import stored_schema

_GOES = f"{OWN}goes"


@dataclass(frozen=True)
class _Changes:
    """Changes of a table's rows as Arrow with the table's columns: what each row becomes, and what it was."""

    inserted: Any
    updated: Any
    before: Any
    deleted: Any
    files: Sequence[str]

    @property
    def counts(self) -> RowCounts:
        return RowCounts(self.inserted.num_rows, self.updated.num_rows, self.deleted.num_rows)


def rewrite(
    target: OpenTarget,
    found: FoundRows,
    changes: Any,
    identity: Sequence[str],
    transaction: BatchTransaction,
) -> str | None:
    """Write changes into a target, in one commit. ``reason_against`` it must have given none.

    Args:
        found: the target's rows about the batch's keys.
        changes: Arrow rows with the target's columns, each row whole; where ``__hw_gone`` is true, the row goes.
        identity: the columns that tell which row is meant.

    Returns:
        None where it is done; else why it is for a MERGE to do, and nothing is written.
    """
    schema = target.rows.schema
    split = _split(found, changes, identity, schema)
    if isinstance(split, str):
        return split
    spark = target.rows.sparkSession
    files = [found.files[path] for path in split.files]
    transaction = transaction.with_metadata(**engine(None))
    with file_rewrite(spark, target.path, found.version, files, transaction) as begun:
        if isinstance(begun, str):
            return begun
        rows = _added(spark, split, schema, fed=found.fed and bool(files))
        if files:
            kept = _kept(begun.rows, split, identity, schema)
            rows = kept.select(*map(quoted, rows.columns)).unionByName(rows)
        return begun.commit(rows, split.counts, transaction)


def reason_against(
    target: OpenTarget, found: FoundRows, identity: Sequence[str], wanted: StructType
) -> str | None:
    """Why ``rewrite`` must not be tried: the table's features or columns, or the types of ``identity``; None where it may.

    ``wanted``: the columns that the target is to have.
    """
    schema = target.rows.schema
    if found.against is not None:
        return found.against
    if not _same_columns(schema, wanted):
        return "the table has other columns than the flow"
    if not all(is_told_apart(schema[name].dataType) for name in identity):
        return "a key or the sequence is of a type that Arrow compares otherwise"
    return None


def _same_columns(held: StructType, wanted: StructType) -> bool:
    """Whether the table has the columns that it is to have, and no others."""
    kinds = {field.name: field.dataType.simpleString() for field in wanted.fields}
    return {field.name: field.dataType.simpleString() for field in held.fields} == kinds


def _split(found: FoundRows, changes: Any, identity: Sequence[str], schema: StructType) -> _Changes | str:
    """What is inserted, updated and deleted; or why that can't be told."""
    import pyarrow as pa
    from pyarrow import compute

    form = arrow_form(schema)
    try:
        new = changes.select(form.names).cast(form)
        old = found.rows.select(form.names).cast(form)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return "a value does not fit its column as Arrow has it"
    names = [f"k{number}" for number in range(len(identity))]
    left, right = (rows.select(list(identity)).rename_columns(names) for rows in (new, old))
    left = left.append_column("new", pa.array(range(new.num_rows), pa.int64()))
    right = right.append_column("old", pa.array(range(old.num_rows), pa.int64()))
    both = left.append_column("gone", changes[GONE]).join(right, names, join_type="left outer")
    met = both.filter(compute.is_valid(both["old"]))
    if both.num_rows != new.num_rows or len(met["old"].unique()) != met.num_rows:
        return "a key has several rows"
    here, gone = compute.is_valid(both["old"]), both["gone"]
    updated = both.filter(compute.and_(here, compute.invert(gone)))
    deleted = both.filter(compute.and_(here, gone))
    inserted = both.filter(compute.and_(compute.invert(here), compute.invert(gone)))
    return _Changes(
        new.take(inserted["new"]),
        new.take(updated["new"]),
        old.take(updated["old"]),
        old.take(deleted["old"]),
        found.file_of.take(met["old"].combine_chunks()).unique().to_pylist(),
    )


def _added(spark: SparkSession, split: _Changes, schema: StructType, *, fed: bool) -> DataFrame:
    """The rows that no file holds yet: new ones, and those for the change feed.

    ``fed``: whether the change feed has to be told. Of a commit that only adds files it knows by itself.
    """
    import pyarrow as pa

    # Delta looks for NULLs where there are to be none; Spark would not, if its rows were said to have none.
    if not fed:
        return local_frame(spark, split.inserted, stored_schema(schema))
    parts = [
        (split.inserted, None),
        (split.inserted, "insert"),
        (split.before, "update_preimage"),
        (split.updated, "update_postimage"),
        (split.deleted, "delete"),
    ]
    told = [
        rows.append_column(CHANGE_TYPE, pa.array([kind] * rows.num_rows, pa.string())) for rows, kind in parts
    ]
    return local_frame(spark, pa.concat_tables(told), stored_schema(schema).add(CHANGE_TYPE, StringType()))


def _kept(rows: DataFrame, split: _Changes, identity: Sequence[str], schema: StructType) -> DataFrame:
    """The rows of the files as they are after the changes."""
    import pyarrow as pa

    updated = split.updated.append_column(_GOES, pa.array([False] * split.updated.num_rows, pa.bool_()))
    deleted = split.deleted.append_column(_GOES, pa.array([True] * split.deleted.num_rows, pa.bool_()))
    rows_to_be = pa.concat_tables([updated, deleted])
    changed = local_frame(rows.sparkSession, rows_to_be, stored_schema(schema).add(_GOES, BooleanType()))
    on: list[Column] = [F.col(quoted("t", name)) == F.col(quoted("u", name)) for name in identity]
    met = rows.alias("t").join(F.broadcast(changed.alias("u")), on, "left")
    goes = F.col(quoted("u", _GOES))
    values = [
        F.when(goes.isNull(), F.col(quoted("t", f.name))).otherwise(F.col(quoted("u", f.name))).alias(f.name)
        for f in schema.fields
        if f.name not in identity
    ]
    same = [F.col(quoted("t", name)).alias(name) for name in identity]
    return met.where(goes.isNull() | ~goes).select(
        *same, *values, F.lit(None).cast("string").alias(CHANGE_TYPE)
    )
