"""Merging schemas: of several files, or of earlier and later ones."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
)

_DIGITS: dict[type[DataType], int] = {ByteType: 3, ShortType: 5, IntegerType: 10, LongType: 20}
_WHOLE = (ByteType, ShortType, IntegerType, LongType)


def union(schemas: Iterable[StructType]) -> StructType:
    """The fields of all, in the order they are met; where types differ, the one that holds both, else STRING."""
    merged = StructType()
    for schema in schemas:
        merged = evolved(merged, schema, widen=True, else_string=True)
    return merged


def evolved(
    current: StructType, seen: StructType, *, widen: bool = False, else_string: bool = False
) -> StructType:
    """``current`` with the fields of ``seen`` that it lacks at the end, at each level of structs.

    A field that differs only in letter case is not new. Types stay, unless ``widen``: then a type is replaced by a wider one
    that Delta can change a column to. ``else_string``: where neither type fits the other, it becomes STRING.
    """
    fields = {field.name.lower(): field for field in current.fields}
    for field in seen.fields:
        before = fields.get(field.name.lower())
        if before is None:
            fields[field.name.lower()] = StructField(field.name, field.dataType)
        elif before.name == field.name:
            kind = _merged(before.dataType, field.dataType, widen=widen, else_string=else_string)
            fields[field.name.lower()] = StructField(before.name, kind, True, before.metadata)
    return StructType(list(fields.values()))


def without_void(schema: StructType) -> StructType:
    """Columns in which only NULL occurred become STRING, as in Spark's JSON reader."""
    return StructType([StructField(f.name, _filled(f.dataType), True, f.metadata) for f in schema.fields])


def _filled(kind: DataType) -> DataType:
    if isinstance(kind, NullType):
        return StringType()
    if isinstance(kind, ArrayType):
        return ArrayType(_filled(kind.elementType))
    if isinstance(kind, MapType):
        return MapType(kind.keyType, _filled(kind.valueType))
    return without_void(kind) if isinstance(kind, StructType) else kind


def _merged(before: DataType, seen: DataType, *, widen: bool, else_string: bool) -> DataType:
    if before == seen or NullType() in (before, seen):
        return seen if isinstance(before, NullType) else before
    if isinstance(before, StructType) and isinstance(seen, StructType):
        return evolved(before, seen, widen=widen, else_string=else_string)
    within = partial(_merged, widen=widen, else_string=else_string)
    if isinstance(before, ArrayType) and isinstance(seen, ArrayType):
        return ArrayType(within(before.elementType, seen.elementType))
    if isinstance(before, MapType) and isinstance(seen, MapType) and before.keyType == seen.keyType:
        return MapType(before.keyType, within(before.valueType, seen.valueType))
    wide = wider_type(before, seen) if widen else None
    if wide is None and else_string and wider_type(seen, before) is None:
        return DoubleType() if {type(before), type(seen)} == {LongType, DoubleType} else StringType()
    return wide or before


def wider_type(before: DataType, seen: DataType) -> DataType | None:
    """The type that holds both and that Delta can widen ``before`` to, None where there is none."""
    if isinstance(before, _WHOLE) and isinstance(seen, _WHOLE):
        return seen if _DIGITS[type(seen)] > _DIGITS[type(before)] else None
    if isinstance(before, ByteType | ShortType | IntegerType | FloatType) and isinstance(seen, DoubleType):
        return seen
    if isinstance(before, DateType) and isinstance(seen, TimestampNTZType):
        return seen
    if isinstance(before, (*_WHOLE, DecimalType)) and isinstance(seen, DecimalType):
        integer_digits = (
            before.precision - before.scale if isinstance(before, DecimalType) else _DIGITS[type(before)]
        )
        scale = max(seen.scale, before.scale if isinstance(before, DecimalType) else 0)
        precision = max(integer_digits, seen.precision - seen.scale) + scale
        return DecimalType(precision, scale) if precision <= 38 else None
    return None
