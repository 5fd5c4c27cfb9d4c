"""The columns of a change flow against those that its target has: what fits, what widens, and what is refused.

The table's types win where they hold the flow's values, and give way where Delta can widen them. A field that a struct of
the source has lost is NULL from then on, as if the source still had it.

Decision 0143.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StringType, StructField, StructType

from headwater.definitions.change_conditions import ColumnTypeChanged
from headwater_spark.auto_cdc.change_columns import END_AT, START_AT, ChangeColumns
from headwater_spark.sources.cloud_files.merging import wider_type

TYPE_WIDENING = "delta.enableTypeWidening"
# Parts of a column that are to be of another type: the path to each, as ALTER TABLE takes it, and the type.
Widened = tuple[tuple[tuple[str, ...], DataType], ...]


@dataclass(frozen=True)
class FittedColumns:
    """A flow's columns with the types that its target has, or is to have. ``widened``: what the target is to be given first."""

    columns: ChangeColumns
    widened: Widened = ()


def fit_columns(
    columns: ChangeColumns, table: StructType, where: object, *, widens: Callable[[], bool]
) -> FittedColumns:
    """Fit a flow's columns to a target.

    Args:
        table: the target's columns.
        widens: says whether the target's properties let its columns be widened; called where one is to be.

    Raises:
        ColumnTypeChanged: a column comes with a type that the table's can't be brought together with.
    """
    known = {field.name.lower(): field for field in table.fields}
    fields, widened = [], []
    fixed = {name.lower() for name in (*columns.keys, START_AT, END_AT)}
    for field in columns.target_schema.fields:
        held, now = known.get(field.name.lower()), field.dataType
        wanted = now if held is None else _fitted(held.dataType, now, exact=field.name.lower() in fixed)
        if held is not None and wanted is None:
            raise _refused(field, held, where, "Cast it in the source")
        if held is not None and wanted is not None:
            parts = list(_widened(held.dataType, wanted, (held.name,)))
            if parts and not widens():
                remedy = f'Give the target table_properties={{"{TYPE_WIDENING}": "true"}}, and it widens by itself; or cast it in the source'
                raise _refused(field, held, where, remedy)
            widened += parts
        if field.name in columns.names:
            same = wanted is None or wanted.simpleString() == now.simpleString()
            own = next(f for f in columns.fields if f.name == field.name)
            fields.append(own if same else StructField(field.name, wanted or now))
    return FittedColumns(replace(columns, fields=tuple(fields)), tuple(widened))


def fitted_type(known: DataType, now: DataType) -> DataType | None:
    """The type that holds values of both and that a column of type ``known`` can be given; None where there is none.

    Fields that one of two structs lacks are in it, and are NULL.
    """
    return _fitted(known, now, exact=False)


def _fitted(known: DataType, now: DataType, *, exact: bool) -> DataType | None:
    if isinstance(known, StructType) and isinstance(now, StructType):
        return _fitted_struct(known, now, exact=exact)
    if isinstance(known, ArrayType) and isinstance(now, ArrayType):
        element = _fitted(known.elementType, now.elementType, exact=exact)
        return None if element is None else ArrayType(element)
    if isinstance(known, MapType) and isinstance(now, MapType):
        key = _fitted(known.keyType, now.keyType, exact=True)
        value = _fitted(known.valueType, now.valueType, exact=exact)
        return None if key is None or value is None else MapType(key, value)
    return _fitted_value(known, now, exact=exact)


def _fitted_value(known: DataType, now: DataType, *, exact: bool) -> DataType | None:
    if isinstance(now, NullType):
        return known
    # Collations decide what is equal, not what fits.
    if known == now or (isinstance(known, StringType) and isinstance(now, StringType)):
        return now
    if exact:
        return None
    return wider_type(known, now) or (known if wider_type(now, known) == known else None)


def _fitted_struct(known: StructType, now: StructType, *, exact: bool) -> StructType | None:
    given = {field.name.lower(): field for field in now.fields}
    fields = []
    for field in known.fields:
        other = given.pop(field.name.lower(), None)
        if other is None and exact:
            return None
        kind = field.dataType if other is None else _fitted(field.dataType, other.dataType, exact=exact)
        if kind is None:
            return None
        fields.append(StructField(field.name, kind))
    return StructType([*fields, *(StructField(field.name, field.dataType) for field in given.values())])


def _widened(
    known: DataType, wanted: DataType, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], DataType]]:
    if isinstance(known, StructType) and isinstance(wanted, StructType):
        kinds = {field.name.lower(): field.dataType for field in wanted.fields}
        for field in known.fields:
            yield from _widened(field.dataType, kinds[field.name.lower()], (*path, field.name))
    elif isinstance(known, ArrayType) and isinstance(wanted, ArrayType):
        yield from _widened(known.elementType, wanted.elementType, (*path, "element"))
    elif isinstance(known, MapType) and isinstance(wanted, MapType):
        yield from _widened(known.valueType, wanted.valueType, (*path, "value"))
    elif known != wanted and not isinstance(known, StringType):
        yield path, wanted


def _refused(field: StructField, held: StructField, where: object, remedy: str) -> ColumnTypeChanged:
    return ColumnTypeChanged(
        f"AUTO CDC: the column {field.name!r} is {held.dataType.simpleString()} in the table, and now comes as "
        f"{field.dataType.simpleString()}. Nothing of the batch was written.",
        where=where,
        remedy=f"{remedy}, or fill the table anew with --full-refresh.",
    )
