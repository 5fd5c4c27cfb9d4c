"""JSON with its rescued data: three strategies for the same rows.

The plain one is Spark's JSON source, for files that were proven to have nothing to rescue. The fast path keeps the text of
records that Spark's source could not type, and parses only these. It does not notice keys that the schema lacks, so it is
used only for files that were proven to have none. The careful one reads text and parses each record itself.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from headwater_spark.plans.names import quoted
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
    if read.fits and _corrupt_name(read) not in read.data.names:
        return _plain(session, read)
    if read.proven:
        return _quick(session, read, parsed, data)
    return _careful(session, read, parsed, data)


def _plain(session: SparkSession, read: FileRead) -> DataFrame:
    reader = native_reader(session, read, "json").schema(read.data)
    frame = guarded(reader.load(read.loaded), read, opened=True)
    columns = [F.col(quoted(name)) for name in read.data.names]
    if read.options.rescued is not None:
        columns.append(F.lit(None).cast("string").alias(read.options.rescued))
    return with_path_columns(frame, read, columns)


def _quick(session: SparkSession, read: FileRead, parsed: StructType, data: StructType) -> DataFrame:
    def typed(field: StructField) -> Column:
        return F.col(quoted(field.name))

    reader = native_reader(session, read, "json").option("columnNameOfCorruptRecord", CORRUPT)
    frame = guarded(reader.schema(parsed).load(read.loaded), read, opened=True)
    # Evaluated only where it is needed, unlike _metadata, which each row would carry.
    path, text = F.regexp_replace(F.input_file_name(), "^file://", "file:"), F.col(CORRUPT)
    if read.options.mode is EvolutionMode.WIDEN:
        frame = frame.where(_no_new_fields(read, data, fields_of(text), typed, path))
    columns = _columns(read, typed, text)
    if read.options.rescued is not None:
        record = RawRecord(text, fields_of(text), text.isNotNull())
        rescued = rescued_text(rescued_fields(data, typed, record), path)
        columns.append(F.when(text.isNotNull(), rescued).alias(read.options.rescued))
    return with_path_columns(frame, read, columns)


def _careful(session: SparkSession, read: FileRead, parsed: StructType, data: StructType) -> DataFrame:
    def typed(field: StructField) -> Column:
        return F.col(RECORD).getField(field.name)

    options = {**read.options.native, "columnNameOfCorruptRecord": CORRUPT}
    frame = text_lines(session, read).select(TEXT, PATH, F.from_json(TEXT, parsed, options).alias(RECORD))
    broken, path = F.col(RECORD).getField(CORRUPT), F.col(PATH)
    clean = broken.isNull() & surely_clean(F.col(TEXT), data, typed)
    frame = frame.select(RECORD, PATH, F.when(~clean, F.col(TEXT)).alias(TEXT))
    frame = frame.select(RECORD, PATH, TEXT, fields_of(F.col(TEXT)).alias(_FIELDS))
    if read.options.mode.evolves or read.options.mode is EvolutionMode.FAIL:
        frame = frame.where(_no_new_fields(read, data, F.col(_FIELDS), typed, path))
    columns = _columns(read, typed, broken)
    if read.options.rescued is not None:
        record = RawRecord(F.col(TEXT), F.col(_FIELDS), broken.isNotNull())
        frame = frame.select(RECORD, PATH, rescued_fields(data, typed, record).alias(_LOST))
        columns.append(rescued_text(F.col(_LOST), path).alias(read.options.rescued))
    return with_path_columns(frame, read, columns)


def _no_new_fields(read: FileRead, data: StructType, fields: Column, typed: Typed, path: Column) -> Column:
    widening = typed if read.options.mode is EvolutionMode.WIDEN else None
    return refusing(unknown_names(data, fields, widening=widening), path)


def _columns(read: FileRead, typed: Typed, broken: Column) -> list[Column]:
    corrupt = _corrupt_name(read)
    return [(broken if f.name == corrupt else typed(f)).alias(f.name) for f in read.data.fields]


def _corrupt_name(read: FileRead) -> str:
    """The column in which a given schema asks for the text of malformed records."""
    return read.options.native_option("columnNameOfCorruptRecord", "_corrupt_record")


def _parsed_schema(read: FileRead) -> StructType:
    return StructType([field for field in read.data.fields if field.name != _corrupt_name(read)])
