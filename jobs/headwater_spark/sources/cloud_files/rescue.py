"""Rescued data: what a record holds and the typed columns do not, as one column of JSON text.

All of it is Spark's own expressions. The raw record is looked into only where something may be amiss, so that clean
records pay for a test and no more.
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

Typed = Callable[[StructField], Column]


@dataclass(frozen=True)
class RawRecord:
    """A record before it is typed. ``fields``: its top level as a map, NULL where the text is no object.

    ``text``: the record's text, NULL where it is known to be clean. ``broken``: whether Spark's parser complained.
    """

    text: Column
    fields: Column
    broken: Column


def fields_of(text: Column) -> Column:
    """The top level of a JSON text as a map of variants, NULL where it is no object."""
    return F.try_variant_get(F.try_parse_json(text), "$", _MAP)


def surely_clean(text: Column, schema: StructType, typed: Typed) -> Column:
    """Whether a text holds nothing but the typed columns, told by counting; False where it can't be told so.

    Each key of an object is followed by ``":``. As many of them as there are typed values: no other key is there.
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
    found = _lost(schema, typed, record.fields, record.broken)
    whole = F.create_map(F.lit("_corrupt_record"), record.text.cast("variant"))
    return F.when(record.text.isNull(), F.lit(None)).when(record.fields.isNull(), whole).otherwise(found)


def rescued_text(fields: Column, path: Column) -> Column:
    """The rescued data column: JSON with the file's path, NULL where there is nothing to rescue."""
    whole = F.map_concat(fields, F.create_map(F.lit("_file_path"), path.cast("variant")))
    return F.when(F.size(fields) > 0, F.to_json(whole))


def unknown_names(schema: StructType, fields: Column, *, widening: Typed | None = None) -> Column:
    """Names that the schema could take: new ones at any level of structs.

    ``widening``: the typed columns, where a column that is too narrow counts too, as ``id=BIGINT``.
    """
    known = [field.name.lower() for field in schema.fields]
    found = F.filter(F.map_keys(fields), lambda key: ~F.lower(key).isin(known))
    for field in schema.fields:
        inner = F.try_element_at(fields, F.lit(field.name))
        if isinstance(field.dataType, StructType):
            names = unknown_names(field.dataType, F.try_variant_get(inner, "$", _MAP))
            nested = _below(field.name, names)
            found = F.concat(found, F.coalesce(nested, _no_names()))
        elif widening is not None and (kinds := _wider_kinds(field.dataType)):
            kind = F.schema_of_variant(inner)
            wide = widening(field).isNull() & kind.rlike(kinds)
            name = F.concat(F.lit(f"{field.name}="), kind)
            found = F.concat(found, F.when(wide, F.array(name)).otherwise(_no_names()))
    return found


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
            whole = DecimalType(int(digits[1]), 0)
            fields.append(StructField(column, DoubleType() if int(digits[2]) else whole))
    return StructType(fields)


def _lost(schema: StructType, typed: Typed, fields: Column, broken: Column) -> Column:
    known = [field.name for field in schema.fields]

    def is_lost(key: Column, value: Column) -> Column:
        unknown = ~key.isin(known)
        mistyped = F.lit(False)
        for field in schema.fields:
            missing = typed(field).isNull()
            if _deep(field.dataType):
                # A parser that went on after an error deep inside leaves the column there, less the bad part.
                missing = missing | broken
            mistyped = mistyped | ((key == field.name) & missing)
        return unknown | (mistyped & ~F.is_variant_null(value))

    found = F.map_filter(fields, is_lost)
    for field in schema.fields:
        if isinstance(field.dataType, StructType):
            inner = F.try_variant_get(F.try_element_at(fields, F.lit(field.name)), "$", _MAP)

            def typed_inside(part: StructField, outer: StructField = field) -> Column:
                return typed(outer).getField(part.name)

            lost = _lost(field.dataType, typed_inside, inner, broken)
            part = F.create_map(F.lit(field.name), F.to_variant_object(lost))
            has_part = typed(field).isNotNull() & F.coalesce(F.size(lost) > 0, F.lit(False))
            found = F.when(has_part, F.map_concat(found, part)).otherwise(found)
    return found


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
    """What a value may be, as a pattern over its variant's type, for the column to be widened to hold it."""
    if isinstance(kind, ByteType | ShortType | IntegerType):
        return r"^(BIGINT|DOUBLE|DECIMAL\(.*)$"
    # Inference takes a fraction for DOUBLE, which a BIGINT can't be widened to.
    return r"^DECIMAL\(\d+,0\)$" if isinstance(kind, LongType) else ""


def _below(parent: str, names: Column) -> Column:
    return F.transform(names, lambda name: F.concat(F.lit(f"{parent}."), name))


def _no_names() -> Column:
    return F.array().cast("array<string>")
