"""``rescuedDataColumn`` on a Delta stream: the columns stay what they were, and what does not fit them is kept as JSON.

Open Delta does not know the option on reads; the name and the form are those that Auto Loader has for files.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.errors import ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import AtomicType, DataType

from headwater.errors import InvalidSourceOption
from headwater_spark.plans.names import quoted

OPTION = "rescueddatacolumn"
# Delta refuses a stream over columns that were removed or renamed. Here no column's meaning changes by that.
ALLOWING = "spark.databricks.delta.streaming.unsafeReadOnIncompatibleColumnMappingSchemaChanges.enabled"


def with_rescued_column(frame: DataFrame, before: Mapping[str, str] | None, column: str) -> DataFrame:
    """The rows of a source in the columns that it had at first, and a column of JSON text with the rest.

    A column that was removed is NULL. A new one is rescued, and so is a value that the old type can't represent exactly: then
    the column is NULL.

    Args:
        frame: the source's rows as it has them now.
        before: its columns at the stream's first start, name to type; None where it has not started.
        column: the name of the rescued data column.

    Raises:
        InvalidSourceOption: the source has a column of that name.
    """
    now = {field.name: field.dataType for field in frame.schema.fields}
    if column.lower() in {name.lower() for name in now}:
        raise InvalidSourceOption(
            f"rescuedDataColumn = {column!r}: the source has a column of that name.",
            remedy="Choose another name.",
        )
    if before is None:
        before = {name: kind.simpleString() for name, kind in now.items()}
    order = {name: number for number, name in enumerate(now)}
    columns: list[Column] = []
    lost: list[Column] = [F.col(quoted(name)).alias(name) for name in now if name not in before]
    # The recorded columns have lost their order; removed columns come last.
    for name, kind in sorted(before.items(), key=lambda item: order.get(item[0], len(order))):
        if name not in now:
            columns.append(F.lit(None).cast(kind).alias(name))
        elif now[name].simpleString() == kind:
            columns.append(F.col(quoted(name)))
        else:
            value, fits = _as(F.col(quoted(name)), now[name], kind)
            columns.append(F.when(fits, value).alias(name))
            lost.append(F.when(~fits, F.col(quoted(name))).alias(name))
    text = F.to_json(F.struct(*lost)) if lost else F.lit(None).cast("string")
    return frame.select(*columns, F.when(text != "{}", text).alias(column))


def _as(value: Column, now: DataType, before: str) -> tuple[Column, Column]:
    """A value in the previous type, and whether it was converted without loss."""
    if not (isinstance(now, AtomicType) and _is_atomic(before)):
        return F.lit(None).cast(before), value.isNull()
    cast = value.try_cast(before)
    return cast, F.coalesce(cast.try_cast(now) == value, value.isNull())


def _is_atomic(kind: str) -> bool:
    try:
        return isinstance(DataType.fromDDL(kind), AtomicType)
    except ParseException:
        return False
