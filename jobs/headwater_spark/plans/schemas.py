"""Schemas of datasets: those of flows, the user's own, and how the two must match."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    DataType,
    DayTimeIntervalType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
    TimeType,
    VariantType,
    YearMonthIntervalType,
)

from headwater.definitions.dataset import Dataset
from headwater.definitions.flow import Flow
from headwater.definitions.source_location import SourceLocation
from headwater.errors import DuplicateColumn, QueryFailed, UnsupportedArgument
from headwater_spark.plans.layouts import check_layout
from headwater_spark.plans.schema_text import GENERATED, IDENTITY, parse_schema

# Spark keeps a watermark in a column's metadata; stored with a table it would leak into that table's readers.
_WATERMARK = "spark.watermarkDelayMs"
_NOT_IN_DELTA = (DayTimeIntervalType, YearMonthIntervalType, CalendarIntervalType, TimeType)
_MARKS = {_WATERMARK, GENERATED, IDENTITY}


def plain_schema(schema: Any, where: SourceLocation | None) -> StructType | None:
    """A user's schema (StructType or DDL text) as a StructType; None stays None.

    Raises UnsupportedArgument where it is neither, or can't be honoured.
    """
    if schema is None or isinstance(schema, StructType):
        return schema
    spark = SparkSession.getActiveSession()
    if isinstance(schema, str) and spark is not None:
        return parse_schema(spark, schema, where)
    raise UnsupportedArgument(
        "schema takes a StructType or a DDL string.", where=where, remedy='Write it as "id INT, name STRING".'
    )


def stored_schema(schema: StructType) -> StructType:
    """The schema as readers of a table see it: every column nullable, no marks in its metadata."""
    return StructType(
        [
            StructField(
                f.name, f.dataType, True, {k: v for k, v in (f.metadata or {}).items() if k not in _MARKS}
            )
            for f in schema.fields
        ]
    )


# Of a target of AUTO CDC with a history.
_OF_HISTORIES = ("__START_AT", "__END_AT", "__SYSTEM_START_AT", "__SYSTEM_END_AT")


def orderable(kind: DataType) -> bool:
    """Whether values of a type can be grouped and ordered."""
    inner = getattr(kind, "elementType", None)
    fields = [inner] if inner is not None else [f.dataType for f in getattr(kind, "fields", ())]
    return not isinstance(kind, MapType | VariantType) and all(orderable(part) for part in fields)


def merged_schema(
    dataset: Dataset, flows: Sequence[tuple[Flow, StructType]], declared: StructType | None
) -> StructType:
    """The columns of a dataset: the given schema, or those of all its flows; raises QueryFailed where they disagree."""
    fields = {f.name.lower(): f for f in stored_schema(declared).fields} if declared else {}
    for flow, schema in flows:
        if dataset.stored:
            _check_names(flow, schema)
            _check_types(flow, schema)
        for field in stored_schema(schema).fields:
            existing = fields.get(field.name.lower())
            if existing is None and declared:
                raise QueryFailed(
                    f"{flow.name!r} returns the column {field.name!r}, which the schema of {dataset.name!r} does not have.",
                    where=flow.location,
                    remedy=f"A history has it, and as on Lakeflow a given schema names it: {field.name} {field.dataType.simpleString()}."
                    if flow.changes is not None and field.name in _OF_HISTORIES
                    else "Add it to the schema, or leave it out of the query.",
                )
            if existing is None:
                fields[field.name.lower()] = field
            elif not _alike(existing, field):
                raise QueryFailed(
                    f"The column {field.name!r} of {dataset.name!r} is {existing.dataType.simpleString()}, and "
                    f"{flow.name!r} returns {field.dataType.simpleString()}.",
                    where=flow.location,
                    remedy=f"Cast it in the query: {_cast(flow, field.name, existing.dataType)}.",
                )
            elif not declared and existing.dataType != field.dataType:
                fields[field.name.lower()] = _nullable(existing)
    if declared:
        _check_required(dataset, flows, declared)
    check_layout(dataset, fields)
    return StructType(list(fields.values()))


def _alike(existing: StructField, field: StructField) -> bool:
    """Whether two columns are of one type. Whether parts may be NULL depends on the rows, and is checked by Delta."""
    return _nullable(existing).dataType == _nullable(field).dataType


def _cast(flow: Flow, name: str, kind: DataType) -> str:
    """A cast in the language of the flow."""
    if flow.location is not None and flow.location.in_sql:
        return f"CAST({name} AS {kind.simpleString().upper()}) AS {name}"
    return f'F.col("{name}").cast("{kind.simpleString()}")'


def _nullable(field: StructField) -> StructField:
    """A column in which everything may be NULL."""
    return StructType([field]).toNullable().fields[0]


def _check_names(flow: Flow, schema: StructType) -> None:
    names = [field.name.lower() for field in schema.fields]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DuplicateColumn(
            f"{flow.name!r} returns more than one column named {', '.join(map(repr, twice))}.",
            where=flow.location,
            remedy=f'Choose one of them after the join: .select("e.*", "i.other") or .drop(right["{twice[0]}"]), or '
            "rename it.",
        )


def _check_types(flow: Flow, schema: StructType) -> None:
    odd = next((field for field in schema.fields if not _storable(field.dataType)), None)
    if odd is not None:
        raise UnsupportedArgument(
            f"{flow.name!r} returns {odd.name!r} as {odd.dataType.simpleString()}, and a Delta table has no column of that type.",
            where=flow.location,
            remedy="Cast it in the query, to text (CAST(x AS STRING)) or, of an interval, to a number of seconds or months; or leave it out.",
        )


def _storable(kind: DataType) -> bool:
    if isinstance(kind, ArrayType):
        return _storable(kind.elementType)
    if isinstance(kind, MapType):
        return _storable(kind.keyType) and _storable(kind.valueType)
    if isinstance(kind, StructType):
        return all(_storable(field.dataType) for field in kind.fields)
    if isinstance(kind, StringType):
        return kind.isUTF8BinaryCollation()
    return not isinstance(kind, _NOT_IN_DELTA)


# What Delta can't put into the names of its files' columns as they are.
_SPECIAL = set(" ,;{}()\n\t=")


def needs_column_mapping(schema: StructType) -> bool:
    """Whether the name of a column or field, as ``sum(amount)``, needs Delta's column mapping to be stored."""
    return any(_SPECIAL & set(field.name) or _special_inside(field.dataType) for field in schema.fields)


def _special_inside(kind: DataType) -> bool:
    if isinstance(kind, ArrayType):
        return _special_inside(kind.elementType)
    if isinstance(kind, MapType):
        return _special_inside(kind.keyType) or _special_inside(kind.valueType)
    return isinstance(kind, StructType) and needs_column_mapping(kind)


def _check_required(dataset: Dataset, flows: Sequence[tuple[Flow, StructType]], declared: StructType) -> None:
    for flow, schema in flows:
        returned = {name.lower() for name in schema.names}
        for field in declared.fields:
            made = {GENERATED, IDENTITY} & set(field.metadata)
            if not field.nullable and not made and field.name.lower() not in returned:
                raise QueryFailed(
                    f"{flow.name!r} does not return the column {field.name!r}, which is NOT NULL in {dataset.name!r}.",
                    where=flow.location,
                    remedy="Return it, or leave NOT NULL out of the schema.",
                )


def with_change_columns(schema: StructType) -> StructType:
    """The schema of a table's change feed."""
    return StructType(
        [
            *schema.fields,
            StructField("_change_type", StringType()),
            StructField("_commit_version", LongType()),
            StructField("_commit_timestamp", TimestampType()),
        ]
    )
