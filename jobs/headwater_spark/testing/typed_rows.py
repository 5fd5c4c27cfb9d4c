"""Rows of a test as an Arrow table with a dataset's columns. Errors name batch, row and column."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from headwater.errors import UsageError
from headwater.suggestions import did_you_mean, nearest

# The columns of Spark's Kafka source. Built by hand: parsing DDL needs a session.
KAFKA = StructType([
    StructField("key", BinaryType()), StructField("value", BinaryType()), StructField("topic", StringType()),
    StructField("partition", IntegerType()), StructField("offset", LongType()),
    StructField("timestamp", TimestampType()), StructField("timestampType", IntegerType()),
])  # fmt: skip
_HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
KAFKA_WITH_HEADERS = StructType([*KAFKA.fields, StructField("headers", ArrayType(_HEADER))])
# The columns of format("kinesis").
KINESIS = StructType([
    StructField("partitionKey", StringType()), StructField("data", BinaryType()), StructField("stream", StringType()),
    StructField("shardId", StringType()), StructField("sequenceNumber", StringType()),
    StructField("approximateArrivalTimestamp", TimestampType()),
])  # fmt: skip
_FIRST_MESSAGE = datetime(2026, 1, 1, tzinfo=UTC)


def arrow_table(rows: Sequence[Mapping[str, Any]], schema: StructType, what: str) -> Any:
    """The rows as an Arrow table; raises UsageError where a row has another column, or a value of another type."""
    import pyarrow as pa

    names = [field.name for field in schema.fields]
    for number, row in enumerate(rows, start=1):
        for name in row:
            if name not in names:
                hint = did_you_mean(nearest(name, names), f"The columns are: {', '.join(names)}.")
                raise UsageError(f"Row {number} of {what} has a column {name!r} too many.", remedy=hint)
    columns = []
    for field, arrow in zip(schema.fields, to_arrow_schema(schema, timezone="UTC"), strict=True):
        values = [_coerced(row.get(field.name), field.dataType) for row in rows]
        try:
            columns.append(pa.array(values, type=arrow.type))
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError) as error:
            raise UsageError(
                f"The column {field.name!r} of {what} is {field.dataType.simpleString()}, and a value does not fit: {error}",
                remedy="Give values of that type, or another schema: schemas={...}.",
            ) from None
    return pa.Table.from_arrays(columns, schema=pa.schema([(f.name, c.type) for f, c in zip(schema.fields, columns, strict=True)]))  # fmt: skip


def inferred_schema(rows: Sequence[Mapping[str, Any]], what: str) -> StructType:
    """The schema that the values imply; raises UsageError where they do not determine it."""
    import pyarrow as pa

    names = list(dict.fromkeys(name for row in rows for name in row))
    remedy = f'Give its columns: schemas={{"{what}": "id INT, name STRING"}}.'
    if not names:
        raise UsageError(f"The columns of {what!r} can't be inferred from its rows.", remedy=remedy)
    columns = []
    for name in names:
        values = [_aware(row.get(name)) for row in rows]
        try:
            columns.append(pa.array(values))
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise UsageError(
                f"The type of {name!r} in {what!r} can't be inferred: {error}", remedy=remedy
            ) from None
        if pa.types.is_null(columns[-1].type):
            raise UsageError(f"Every value of {name!r} in {what!r} is None.", remedy=remedy)
    return from_arrow_schema(pa.schema([(n, c.type) for n, c in zip(names, columns, strict=True)]))


def kafka_row(row: Any, topic: str, offset: int) -> dict[str, Any]:
    """A message as the Kafka source gives it. A text, bytes, or a dict without the key ``value`` is the value alone."""
    names = {field.name for field in KAFKA_WITH_HEADERS.fields}
    message = (
        dict(row) if isinstance(row, Mapping) and "value" in row and set(row) <= names else {"value": row}
    )
    for name in ("key", "value"):
        message[name] = _bytes(message.get(name))
    if message.get("headers") is not None:
        message["headers"] = [{"key": key, "value": _bytes(value)} for key, value in message["headers"]]
    default = {
        "topic": topic, "partition": 0, "offset": offset, "timestampType": 0,
        "timestamp": datetime.fromtimestamp(_FIRST_MESSAGE.timestamp() + offset, UTC),
    }  # fmt: skip
    return {**default, **message}


def kinesis_row(row: Any, stream: str, number: int) -> dict[str, Any]:
    """A record as the Kinesis source gives it. A text, bytes, or a dict without the key ``data`` is the data alone."""
    names = {field.name for field in KINESIS.fields}
    record = dict(row) if isinstance(row, Mapping) and "data" in row and set(row) <= names else {"data": row}
    record["data"] = _bytes(record["data"])
    default = {
        "partitionKey": str(number), "stream": stream, "shardId": "shardId-000000000000", "sequenceNumber": str(number),
        "approximateArrivalTimestamp": datetime.fromtimestamp(_FIRST_MESSAGE.timestamp() + number, UTC),
    }  # fmt: skip
    return {**default, **record}


def json_text(row: Any) -> str:
    """A row as a line of JSON; a text is taken as it is."""
    return row if isinstance(row, str) else json.dumps(row, default=_json_value, ensure_ascii=False)


def _bytes(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return json_text(value).encode()


def _json_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return _aware(value).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    return str(value)


def _aware(value: Any) -> Any:
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value


def _coerced(value: Any, kind: DataType) -> Any:  # noqa: PLR0911 - a case a type
    """A value in the type of its column, where a test may write it shorter: times and numbers as text."""
    if value is None:
        return None
    if isinstance(kind, StructType):
        fields = value if isinstance(value, Mapping) else value.asDict()
        return {field.name: _coerced(fields.get(field.name), field.dataType) for field in kind.fields}
    if isinstance(kind, ArrayType):
        return [_coerced(item, kind.elementType) for item in value]
    if isinstance(kind, MapType):
        pairs = value.items() if isinstance(value, Mapping) else value
        return [(_coerced(k, kind.keyType), _coerced(v, kind.valueType)) for k, v in pairs]
    if isinstance(kind, TimestampType):
        return _aware(datetime.fromisoformat(value) if isinstance(value, str) else value)
    if isinstance(kind, TimestampNTZType | DateType) and isinstance(value, str):
        return (
            datetime.fromisoformat(value) if isinstance(kind, TimestampNTZType) else date.fromisoformat(value)
        )
    if isinstance(kind, DecimalType) and isinstance(value, int | float | str):
        return Decimal(str(value))
    if isinstance(kind, StringType) and isinstance(value, dict | list):
        return json_text(value)
    return value
