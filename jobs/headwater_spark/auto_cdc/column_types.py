"""The columns of a change flow against those of its target: what fits, what widens, and what is refused.

The table's types win where the flow's values fit into them, and are widened where Delta can. A field that a struct of the
source no longer has is NULL from then on.

Decision 0143.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StringType, StructField, StructType

from headwater.definitions.change_conditions import ColumnTypeChanged
from headwater_spark.auto_cdc.change_columns import (
    END_AT,
    START_AT,
    SYSTEM_END_AT,
    SYSTEM_START_AT,
    ChangeColumns,
)
from headwater_spark.sources.cloud_files.merging import wider_type

TYPE_WIDENING = "delta.enableTypeWidening"
# Parts of a column that get another type: the path to each, as ALTER TABLE takes it, and the type.
Widened = tuple[tuple[tuple[str, ...], DataType], ...]


@dataclass(frozen=True)
class FittedColumns:
    """A flow's columns with the types of its target. ``widened``: what has to be altered in the target first."""

    columns: ChangeColumns
    widened: Widened = ()


def fit_columns(
    columns: ChangeColumns, table: StructType, where: object, *, widens: Callable[[], bool]
) -> FittedColumns:
    """Fit a flow's columns to a target.

    Args:
        table: the target's columns.
        widens: says whether the target's properties let its columns be widened; called only where one has to be.

    Raises:
        ColumnTypeChanged: a column's type does not fit the table's.
    """
    table_columns = {field.name.lower(): field for field in table.fields}
    fields, widened = [], []
    fixed = {name.lower() for name in (*columns.keys, START_AT, END_AT, SYSTEM_START_AT, SYSTEM_END_AT)}
    for field in columns.target_schema.fields:
        column, new = table_columns.get(field.name.lower()), field.dataType
        kind = new if column is None else _fitted(column.dataType, new, exact=field.name.lower() in fixed)
        if column is not None and kind is None:
            raise _refused(field, column, where, "Cast it in the source")
        if column is not None and kind is not None:
            parts = list(_widened(column.dataType, kind, (column.name,)))
            if parts and not widens():
                remedy = f'Give the target table_properties={{"{TYPE_WIDENING}": "true"}}, and it widens by itself; or cast it in the source'
                raise _refused(field, column, where, remedy)
            widened += parts
        if field.name in columns.names:
            same = kind is None or kind.simpleString() == new.simpleString()
            own = next(f for f in columns.fields if f.name == field.name)
            fields.append(own if same else StructField(field.name, kind or new))
    return FittedColumns(replace(columns, fields=tuple(fields)), tuple(widened))


def fitted_type(current: DataType, new: DataType) -> DataType | None:
    """The type that a column of type ``current`` can be altered to and that fits values of both; None if there is none.

    It has the fields of both structs.
    """
    return _fitted(current, new, exact=False)


def holds(current: DataType, new: DataType) -> bool:
    """Whether a column of type ``current`` holds all values of type ``new`` as it is; fields of structs may come and go."""
    fitted = fitted_type(current, new)
    return fitted is not None and not list(_widened(current, fitted, ()))


def _fitted(current: DataType, new: DataType, *, exact: bool) -> DataType | None:
    if isinstance(current, StructType) and isinstance(new, StructType):
        return _fitted_struct(current, new, exact=exact)
    if isinstance(current, ArrayType) and isinstance(new, ArrayType):
        element = _fitted(current.elementType, new.elementType, exact=exact)
        return None if element is None else ArrayType(element)
    if isinstance(current, MapType) and isinstance(new, MapType):
        key = _fitted(current.keyType, new.keyType, exact=True)
        value = _fitted(current.valueType, new.valueType, exact=exact)
        return None if key is None or value is None else MapType(key, value)
    return _fitted_value(current, new, exact=exact)


def _fitted_value(current: DataType, new: DataType, *, exact: bool) -> DataType | None:
    if isinstance(new, NullType):
        return current
    # Collations decide what is equal, not what fits.
    if current == new or (isinstance(current, StringType) and isinstance(new, StringType)):
        return new
    if exact:
        return None
    return wider_type(current, new) or (current if wider_type(new, current) == current else None)


def _fitted_struct(current: StructType, new: StructType, *, exact: bool) -> StructType | None:
    new_fields = {field.name.lower(): field for field in new.fields}
    fields = []
    for field in current.fields:
        new_field = new_fields.pop(field.name.lower(), None)
        if new_field is None and exact:
            return None
        kind = (
            field.dataType if new_field is None else _fitted(field.dataType, new_field.dataType, exact=exact)
        )
        if kind is None:
            return None
        fields.append(StructField(field.name, kind))
    return StructType([*fields, *(StructField(field.name, field.dataType) for field in new_fields.values())])


def _widened(
    current: DataType, wider: DataType, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], DataType]]:
    if isinstance(current, StructType) and isinstance(wider, StructType):
        kinds = {field.name.lower(): field.dataType for field in wider.fields}
        for field in current.fields:
            yield from _widened(field.dataType, kinds[field.name.lower()], (*path, field.name))
    elif isinstance(current, ArrayType) and isinstance(wider, ArrayType):
        yield from _widened(current.elementType, wider.elementType, (*path, "element"))
    elif isinstance(current, MapType) and isinstance(wider, MapType):
        yield from _widened(current.valueType, wider.valueType, (*path, "value"))
    elif current != wider and not isinstance(current, StringType):
        yield path, wider


def _refused(field: StructField, column: StructField, where: object, remedy: str) -> ColumnTypeChanged:
    return ColumnTypeChanged(
        f"AUTO CDC: the column {field.name!r} is {column.dataType.simpleString()} in the table, and now comes as "
        f"{field.dataType.simpleString()}. Nothing of the batch was written.",
        where=where,
        remedy=f"{remedy}, or rebuild the table with --full-refresh.",
    )
