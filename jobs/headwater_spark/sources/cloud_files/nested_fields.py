"""Fields that files have and a schema lacks, at any depth of structs, arrays and maps: their names, and how to split them off.

Columnar readers read the fields of the schema and silently leave out the rest of a struct.

Decision 0150.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType


def unknown_fields(schema: StructType, seen: StructType) -> list[str]:
    """The names in ``seen`` that ``schema`` lacks, as ``address.zip``, ``items.element.size``, ``prices.value.currency``."""
    fields = {field.name.lower(): field for field in schema.fields}
    names = []
    for field in seen.fields:
        before = fields.get(field.name.lower())
        if before is None:
            names.append(field.name)
        else:
            names += [f"{before.name}{name}" for name in _below(before.dataType, field.dataType)]
    return names


def _below(schema: DataType, seen: DataType) -> list[str]:
    if isinstance(schema, StructType) and isinstance(seen, StructType):
        return [f".{name}" for name in unknown_fields(schema, seen)]
    if isinstance(schema, ArrayType) and isinstance(seen, ArrayType):
        return [f".element{name}" for name in _below(schema.elementType, seen.elementType)]
    if isinstance(schema, MapType) and isinstance(seen, MapType):
        return [f".value{name}" for name in _below(schema.valueType, seen.valueType)]
    return []


def narrowed(value: Column, full: DataType, target: DataType) -> Column:
    """A value of the type ``full`` with the fields of ``target`` alone; NULL stays NULL."""
    if full == target:
        return value
    if isinstance(full, StructType) and isinstance(target, StructType):
        types = {field.name: field.dataType for field in full.fields}
        parts = [
            narrowed(value.getField(f.name), types[f.name], f.dataType).alias(f.name) for f in target.fields
        ]
        return F.when(value.isNotNull(), F.struct(*parts))
    if isinstance(full, ArrayType) and isinstance(target, ArrayType):
        return F.transform(value, _each(narrowed, full.elementType, target.elementType))
    assert isinstance(full, MapType)
    assert isinstance(target, MapType)
    return F.transform_values(value, lambda _, v: narrowed(v, full.valueType, target.valueType))


def surplus(value: Column, full: DataType, target: DataType) -> Column:
    """What :func:`narrowed` leaves out, in the same form; NULL where it leaves nothing out.

    In an array, an element without such fields is NULL, so that the others keep their positions.
    """
    if isinstance(full, StructType) and isinstance(target, StructType):
        return _surplus_fields(value, full, target)
    if isinstance(full, ArrayType) and isinstance(target, ArrayType):
        parts = F.transform(value, _each(surplus, full.elementType, target.elementType))
        return F.when(F.exists(parts, lambda part: part.isNotNull()), parts)
    assert isinstance(full, MapType)
    assert isinstance(target, MapType)
    values = F.transform_values(value, lambda _, v: surplus(v, full.valueType, target.valueType))
    left = F.map_filter(values, lambda _, part: part.isNotNull())
    return F.when(F.size(left) > 0, left)


def surplus_parts(
    value: Callable[[str], Column], full: Sequence[StructField], target: Sequence[StructField]
) -> list[Column]:
    """The surplus fields, and the surplus parts of the others, each under its name."""
    types = {field.name: field.dataType for field in target}
    parts = []
    for field in full:
        inside = value(field.name)
        if field.name not in types:
            parts.append(inside.alias(field.name))
        elif types[field.name] != field.dataType:
            parts.append(surplus(inside, field.dataType, types[field.name]).alias(field.name))
    return parts


def any_present(parts: Sequence[Column]) -> Column:
    """Whether one of them is not NULL."""
    return reduce(or_, [part.isNotNull() for part in parts])


def _surplus_fields(value: Column, full: StructType, target: StructType) -> Column:
    parts = surplus_parts(value.getField, full.fields, target.fields)
    return F.when(any_present(parts), F.struct(*parts))


def _each(
    change: Callable[[Column, DataType, DataType], Column], full: DataType, target: DataType
) -> Callable[[Column], Column]:
    return lambda item: change(item, full, target)
