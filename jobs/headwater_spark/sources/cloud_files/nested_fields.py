"""Fields that files have and a schema lacks, at any depth of structs, arrays and maps: their names, and how to part with them.

Columnar readers read what the schema asks for and leave the rest of a struct out without a word.

Decision 0150.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType


def unknown_fields(known: StructType, seen: StructType) -> list[str]:
    """The names in ``seen`` that ``known`` lacks, as ``address.zip``, ``items.element.size``, ``prices.value.currency``."""
    fields = {field.name.lower(): field for field in known.fields}
    found = []
    for field in seen.fields:
        before = fields.get(field.name.lower())
        if before is None:
            found.append(field.name)
        else:
            found += [f"{before.name}{name}" for name in _below(before.dataType, field.dataType)]
    return found


def _below(known: DataType, seen: DataType) -> list[str]:
    if isinstance(known, StructType) and isinstance(seen, StructType):
        return [f".{name}" for name in unknown_fields(known, seen)]
    if isinstance(known, ArrayType) and isinstance(seen, ArrayType):
        return [f".element{name}" for name in _below(known.elementType, seen.elementType)]
    if isinstance(known, MapType) and isinstance(seen, MapType):
        return [f".value{name}" for name in _below(known.valueType, seen.valueType)]
    return []


def narrowed(value: Column, whole: DataType, wanted: DataType) -> Column:
    """A value of the type ``whole`` with the fields of ``wanted`` alone; NULL stays NULL."""
    if whole == wanted:
        return value
    if isinstance(whole, StructType) and isinstance(wanted, StructType):
        types = {field.name: field.dataType for field in whole.fields}
        parts = [
            narrowed(value.getField(f.name), types[f.name], f.dataType).alias(f.name) for f in wanted.fields
        ]
        return F.when(value.isNotNull(), F.struct(*parts))
    if isinstance(whole, ArrayType) and isinstance(wanted, ArrayType):
        return F.transform(value, _each(narrowed, whole.elementType, wanted.elementType))
    assert isinstance(whole, MapType)
    assert isinstance(wanted, MapType)
    return F.transform_values(value, lambda _, v: narrowed(v, whole.valueType, wanted.valueType))


def surplus(value: Column, whole: DataType, wanted: DataType) -> Column:
    """What :func:`narrowed` leaves out, in the same form, NULL where that is nothing.

    Of an array, an element without such fields is NULL, so that the others keep their places.
    """
    if isinstance(whole, StructType) and isinstance(wanted, StructType):
        return _surplus_fields(value, whole, wanted)
    if isinstance(whole, ArrayType) and isinstance(wanted, ArrayType):
        parts = F.transform(value, _each(surplus, whole.elementType, wanted.elementType))
        return F.when(F.exists(parts, lambda part: part.isNotNull()), parts)
    assert isinstance(whole, MapType)
    assert isinstance(wanted, MapType)
    values = F.transform_values(value, lambda _, v: surplus(v, whole.valueType, wanted.valueType))
    left = F.map_filter(values, lambda _, part: part.isNotNull())
    return F.when(F.size(left) > 0, left)


def surplus_parts(
    value: Callable[[str], Column], whole: Sequence[StructField], wanted: Sequence[StructField]
) -> list[Column]:
    """The fields that are too many, and what is too much in the others, each under its name."""
    known = {field.name: field.dataType for field in wanted}
    parts = []
    for field in whole:
        inside = value(field.name)
        if field.name not in known:
            parts.append(inside.alias(field.name))
        elif known[field.name] != field.dataType:
            parts.append(surplus(inside, field.dataType, known[field.name]).alias(field.name))
    return parts


def any_there(parts: Sequence[Column]) -> Column:
    """Whether one of them is not NULL."""
    return reduce(or_, [part.isNotNull() for part in parts])


def _surplus_fields(value: Column, whole: StructType, wanted: StructType) -> Column:
    parts = surplus_parts(value.getField, whole.fields, wanted.fields)
    return F.when(any_there(parts), F.struct(*parts))


def _each(
    change: Callable[[Column, DataType, DataType], Column], whole: DataType, wanted: DataType
) -> Callable[[Column], Column]:
    return lambda item: change(item, whole, wanted)
