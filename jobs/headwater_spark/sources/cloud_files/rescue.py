"""Rescued data: the part of a record that is not in typed columns, as one column of JSON text.

It consists of Spark's own expressions. The raw record is parsed only where something may be wrong, so that clean records cost
only a test.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StructField,
    StructType,
)

UNKNOWN_FIELDS = "HEADWATER_UNKNOWN_FIELDS:"
LATE_FILE = "HEADWATER_LATE_FILE:"
_MAP = "map<string,variant>"
_ARRAY = "array<variant>"

Typed = Callable[[StructField], Column]


@dataclass(frozen=True)
class RawRecord:
    """A record before it is typed. ``fields``: its top level as a map, NULL where the text is not an object.

    ``text``: the record's text, NULL where it is known to be clean. ``broken``: whether Spark's parser complained.
    """

    text: Column
    fields: Column
    broken: Column


def fields_of(text: Column) -> Column:
    """The top level of a JSON text as a map of variants, NULL where it is not an object."""
    return F.try_variant_get(F.try_parse_json(text), "$", _MAP)


def surely_clean(text: Column, schema: StructType, typed: Typed) -> Column:
    """Whether a text has nothing but the typed columns, determined by counting; False where that is not conclusive.

    Each key of an object is followed by ``":``. If there are as many as typed values, there is no other key.
    """
    if any(isinstance(f.dataType, StructType | ArrayType | MapType) for f in schema.fields):
        return F.lit(False)
    values = F.lit(0)
    for field in schema.fields:
        values = values + typed(field).isNotNull().cast("int")
    marks = F.octet_length(text) - F.octet_length(F.replace(text, F.lit('":'), F.lit("")))
    spaced = F.lit(False)
    for blank in (" :", "\t:", "\r:", "\n:"):
        spaced = spaced | F.contains(text, F.lit(blank))
    return (values > 0) & (marks == values * 2) & ~spaced


def rescued_fields(schema: StructType, typed: Typed, record: RawRecord) -> Column:
    """The fields of a record that did not become columns, as a map: unknown ones, and those of the wrong type."""
    lost = _lost(schema, typed, record.fields, record.broken)
    unparsed = F.create_map(F.lit("_corrupt_record"), record.text.cast("variant"))
    return F.when(record.text.isNull(), F.lit(None)).when(record.fields.isNull(), unparsed).otherwise(lost)


def rescued_text(fields: Column, path: Column) -> Column:
    """The rescued data column: JSON with the file's path, NULL where there is nothing to rescue."""
    with_path = F.map_concat(fields, F.create_map(F.lit("_file_path"), path.cast("variant")))
    return F.when(F.size(fields) > 0, F.to_json(with_path))


def unknown_names(schema: StructType, fields: Column, *, widening: Typed | None = None) -> Column:
    """Names that the schema could take: new ones at any level of structs and arrays (``items.element.size``).

    ``widening``: the typed columns, where a column that is too narrow counts too, as ``id=BIGINT``.
    """
    schema_names = [field.name.lower() for field in schema.fields]
    names = F.filter(F.map_keys(fields), lambda key: ~F.lower(key).isin(schema_names))
    for field in schema.fields:
        inner = F.try_element_at(fields, F.lit(field.name))
        if _has_fields(field.dataType):
            nested = _below(field.name, _unknown_below(field.dataType, inner))
            names = F.concat(names, F.coalesce(nested, _no_names()))
        elif widening is not None and (kinds := _wider_kinds(field.dataType)):
            kind = F.schema_of_variant(inner)
            wide = widening(field).isNull() & kind.rlike(kinds)
            name = F.concat(F.lit(f"{field.name}="), kind)
            names = F.concat(names, F.when(wide, F.array(name)).otherwise(_no_names()))
    return names


def refusing(names: Column, path: Column) -> Column:
    """A condition that is true, or fails the query where there are names."""
    message = F.concat(F.lit(UNKNOWN_FIELDS), F.array_join(names, ", "), F.lit(" in "), path)
    return F.when(F.size(names) > 0, F.raise_error(message).cast("boolean")).otherwise(F.lit(True))


def wider_columns(names: str) -> StructType:
    """The columns to widen in a list of names (``"z, id=BIGINT"``), with the type that each needs."""
    fields = []
    for name in names.split(", "):
        column, sign, kind = name.rpartition("=")
        if sign and kind in ("BIGINT", "DOUBLE"):
            fields.append(StructField(column, LongType() if kind == "BIGINT" else DoubleType()))
        elif sign and (digits := re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", kind)):
            integer_type = DecimalType(int(digits[1]), 0)
            fields.append(StructField(column, DoubleType() if int(digits[2]) else integer_type))
    return StructType(fields)


def _lost(schema: StructType, typed: Typed, fields: Column, broken: Column) -> Column:
    schema_names = [field.name for field in schema.fields]

    def is_lost(key: Column, value: Column) -> Column:
        unknown = ~key.isin(schema_names)
        mistyped = F.lit(False)
        for field in schema.fields:
            missing = typed(field).isNull()
            if _deep(field.dataType):
                # A parser that went on after an error deep inside leaves the column there, less the bad part.
                missing = missing | broken
            mistyped = mistyped | ((key == field.name) & missing)
        return unknown | (mistyped & ~F.is_variant_null(value))

    lost_fields = F.map_filter(fields, is_lost)
    for field in schema.fields:
        if isinstance(field.dataType, ArrayType) and _has_fields(field.dataType):
            unknown = _unknown_part(field.dataType, F.try_element_at(fields, F.lit(field.name)))
            # With an error anywhere in the record the array was rescued whole.
            has_part = typed(field).isNotNull() & unknown.isNotNull() & ~broken
            part = F.create_map(F.lit(field.name), unknown)
            lost_fields = F.when(
                F.coalesce(has_part, F.lit(False)), F.map_concat(lost_fields, part)
            ).otherwise(lost_fields)
        if isinstance(field.dataType, StructType):
            inner = F.try_variant_get(F.try_element_at(fields, F.lit(field.name)), "$", _MAP)

            def typed_inside(part: StructField, outer: StructField = field) -> Column:
                return typed(outer).getField(part.name)

            lost = _lost(field.dataType, typed_inside, inner, broken)
            part = F.create_map(F.lit(field.name), F.to_variant_object(lost))
            has_part = typed(field).isNotNull() & F.coalesce(F.size(lost) > 0, F.lit(False))
            lost_fields = F.when(has_part, F.map_concat(lost_fields, part)).otherwise(lost_fields)
    return lost_fields


def _has_fields(kind: DataType) -> bool:
    """Whether values of a type have named fields: structs, and arrays of them."""
    return isinstance(kind, StructType) or (isinstance(kind, ArrayType) and _has_fields(kind.elementType))


def _unknown_below(kind: DataType, value: Column) -> Column:
    """The names in a variant that a struct, or the structs of an array, could take."""
    if isinstance(kind, ArrayType):
        items = F.try_variant_get(value, "$", _ARRAY)
        names = F.transform(items, lambda item: _unknown_below(kind.elementType, item))
        return _below("element", F.array_distinct(F.flatten(F.array_compact(names))))
    assert isinstance(kind, StructType)
    return unknown_names(kind, F.try_variant_get(value, "$", _MAP))


def _unknown_part(kind: DataType, value: Column) -> Column:
    """The part of a variant that the type does not cover, in the same form, NULL where there is none.

    In an array, an element without such fields is NULL, so that the others keep their positions.
    """
    if isinstance(kind, ArrayType):
        items = F.try_variant_get(value, "$", _ARRAY)
        parts = F.transform(items, lambda item: _unknown_part(kind.elementType, item))
        return F.when(F.exists(parts, lambda part: part.isNotNull()), F.to_variant_object(parts))
    assert isinstance(kind, StructType)
    fields = F.try_variant_get(value, "$", _MAP)
    unknown = F.map_filter(fields, lambda key, _: ~key.isin([field.name for field in kind.fields]))
    for field in kind.fields:
        if _has_fields(field.dataType):
            part = _unknown_part(field.dataType, F.try_element_at(fields, F.lit(field.name)))
            with_part = F.map_concat(unknown, F.create_map(F.lit(field.name), part))
            unknown = F.when(part.isNotNull(), with_part).otherwise(unknown)
    return F.when(F.size(unknown) > 0, F.to_variant_object(unknown))


def _deep(kind: DataType) -> bool:
    inner = (
        kind.elementType
        if isinstance(kind, ArrayType)
        else kind.valueType
        if isinstance(kind, MapType)
        else None
    )
    return isinstance(inner, StructType | ArrayType | MapType)


def _wider_kinds(kind: DataType) -> str:
    """The variant types, as a pattern, of values that the column can be widened for."""
    if isinstance(kind, ByteType | ShortType | IntegerType):
        return r"^(BIGINT|DOUBLE|DECIMAL\(.*)$"
    # Inference takes a fraction for DOUBLE, which a BIGINT can't be widened to.
    return r"^DECIMAL\(\d+,0\)$" if isinstance(kind, LongType) else ""


def _below(parent: str, names: Column) -> Column:
    return F.transform(names, lambda name: F.concat(F.lit(f"{parent}."), name))


def _no_names() -> Column:
    return F.array().cast("array<string>")
