"""JSON with its rescued data: two ways to the same rows.

The quick way is Spark's JSON source: it keeps the text of a record that it could not type, so those are looked into.
It says nothing of keys that the schema lacks, so it is taken only for files that were proven to have none. The
careful way reads text and parses each record itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from headwater_spark.sources.cloud_files.frames import (
    CORRUPT,
    PATH,
    RECORD,
    TEXT,
    FileRead,
    guarded,
    native_reader,
    text_lines,
    with_path_columns,
)
from headwater_spark.sources.cloud_files.options import EvolutionMode
from headwater_spark.sources.cloud_files.rescue import (
    RawRecord,
    Typed,
    fields_of,
    refusing,
    rescued_fields,
    rescued_text,
    surely_clean,
    unknown_names,
)

_FIELDS = "__headwater_fields"
_LOST = "__headwater_lost"


def json_frame(session: SparkSession, read: FileRead) -> DataFrame:
    """The stream of a JSON read that rescues data or looks for new fields."""
    data = _parsed_schema(read)
    parsed = StructType([*data.fields, StructField(CORRUPT, StringType())])
    way = _quick(session, read, parsed) if read.proven else _careful(session, read, parsed, data)
    mode = read.options.mode
    looking = mode.evolves or mode is EvolutionMode.FAIL
    if looking and not (read.proven and mode is not EvolutionMode.WIDEN):
        way = _looking_for_fields(way, read, data)
    return _rescuing(way, read, data)


@dataclass(frozen=True)
class _Way:
    """A frame with typed columns (``typed``; ``kept``: what holds them), PATH, TEXT and the raw fields."""

    frame: DataFrame
    kept: tuple[str, ...]
    typed: Typed
    broken: Column


def _quick(session: SparkSession, read: FileRead, parsed: StructType) -> _Way:
    reader = native_reader(session, read, "json").option("columnNameOfCorruptRecord", CORRUPT)
    frame = guarded(reader.schema(parsed).load(read.path), read)
    kept = tuple(f"`{name}`" for name in parsed.names)
    frame = frame.select(
        *kept,
        F.col("_metadata.file_path").alias(PATH),
        F.col(CORRUPT).alias(TEXT),
        fields_of(F.col(CORRUPT)).alias(_FIELDS),
    )
    return _Way(frame, kept, lambda field: F.col(f"`{field.name}`"), F.col(CORRUPT))


def _careful(session: SparkSession, read: FileRead, parsed: StructType, data: StructType) -> _Way:
    def typed(field: StructField) -> Column:
        return F.col(RECORD).getField(field.name)

    options = {**read.options.native, "columnNameOfCorruptRecord": CORRUPT}
    lines = text_lines(session, read)
    frame = lines.select(TEXT, PATH, F.from_json(TEXT, parsed, options).alias(RECORD))
    clean = F.col(RECORD).getField(CORRUPT).isNull() & surely_clean(F.col(TEXT), data, typed)
    text = F.when(~clean, F.col(TEXT))
    frame = frame.select(RECORD, PATH, text.alias(TEXT))
    frame = frame.select(RECORD, PATH, TEXT, fields_of(F.col(TEXT)).alias(_FIELDS))
    return _Way(frame, (RECORD,), typed, F.col(RECORD).getField(CORRUPT))


def _looking_for_fields(way: _Way, read: FileRead, data: StructType) -> _Way:
    widening = way.typed if read.options.mode is EvolutionMode.WIDEN else None
    names = unknown_names(data, F.col(_FIELDS), widening=widening)
    return replace(way, frame=way.frame.where(refusing(names, F.col(PATH))))


def _rescuing(way: _Way, read: FileRead, data: StructType) -> DataFrame:
    corrupt = _corrupt_name(read)
    columns = [
        (way.broken if field.name == corrupt else way.typed(field)).alias(field.name)
        for field in read.data.fields
    ]
    if read.options.rescued is None:
        return with_path_columns(way.frame, read, columns)
    record = RawRecord(F.col(TEXT), F.col(_FIELDS), way.broken.isNotNull())
    lost = rescued_fields(data, way.typed, record).alias(_LOST)
    frame = way.frame.select(*way.kept, PATH, lost)
    rescued = rescued_text(F.col(_LOST), F.col(PATH)).alias(read.options.rescued)
    return with_path_columns(frame, read, [*columns, rescued])


def _corrupt_name(read: FileRead) -> str:
    """The column in which a given schema asks for the text of malformed records."""
    return read.options.native_option("columnNameOfCorruptRecord", "_corrupt_record")


def _parsed_schema(read: FileRead) -> StructType:
    return StructType([field for field in read.data.fields if field.name != _corrupt_name(read)])
