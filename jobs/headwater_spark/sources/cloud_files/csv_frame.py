"""CSV with its rescued data: cells are read as text by position, and named by each file's own header."""

from __future__ import annotations

from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    StringType,
    StructField,
    StructType,
)

from headwater_spark.sources.cloud_files.frames import (
    CORRUPT,
    PATH,
    FileRead,
    guarded,
    native_reader,
    string_columns,
    with_path_columns,
)
from headwater_spark.sources.cloud_files.new_files import file_uri
from headwater_spark.sources.cloud_files.rescue import rescued_text

_HEADER = "__headwater_header"
_LOST = "__headwater_lost"
_FORMATS = {"date": "dateFormat", "timestamp": "timestampFormat", "timestamp_ntz": "timestampNTZFormat"}


def csv_frame(session: SparkSession, read: FileRead) -> DataFrame:
    """The stream of a CSV read that rescues data or looks for new fields."""
    groups = _groups(read)
    cells = string_columns(max(len(header) for header in groups))
    parsed = StructType([*cells.fields, StructField(CORRUPT, StringType())])
    reader = native_reader(session, read, "csv").option("columnNameOfCorruptRecord", CORRUPT)
    reader = reader.option("header", str(read.options.header)).option("enforceSchema", "true")
    frame = guarded(reader.schema(parsed).load(read.loaded), read)
    path = F.col("_metadata.file_path")
    number = F.lit(0)
    for index, paths in enumerate(list(groups.values())[1:], start=1):
        number = F.when(path.isin([file_uri(p) for p in paths]), F.lit(index)).otherwise(number)
    frame = frame.select(*parsed.names, number.alias(_HEADER), path.alias(PATH))
    headers = list(groups)
    columns = [_typed(field, headers, read).alias(field.name) for field in read.data.fields]
    if read.options.rescued is None:
        return with_path_columns(frame, read, columns)
    frame = frame.select("*", _lost(headers, cells, read).alias(_LOST))
    rescued = rescued_text(F.col(_LOST), F.col(PATH)).alias(read.options.rescued)
    return with_path_columns(frame, read, [*columns, rescued])


def _groups(read: FileRead) -> dict[tuple[str, ...], list[str]]:
    """The files by their header; before any is known, one group with the schema's own columns."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for path, header in (read.headers or {}).items():
        groups.setdefault(header, []).append(path)
    return groups or {tuple(read.data.names): []}


def _raw(name: str, headers: list[tuple[str, ...]]) -> Column:
    """The cell under a name, as text."""
    value: Column = F.lit(None).cast("string")
    for index, header in enumerate(headers):
        if name in header:
            cell = F.col(f"__c{header.index(name)}")
            value = cell if len(headers) == 1 else F.when(F.col(_HEADER) == index, cell).otherwise(value)
    return value


def _typed(field: StructField, headers: list[tuple[str, ...]], read: FileRead) -> Column:
    raw, kind = _raw(field.name, headers), field.dataType
    form = read.options.native_option(_FORMATS.get(kind.typeName(), ""))
    if form:
        return F.try_to_timestamp(raw, F.lit(form)).cast(kind)
    return raw if isinstance(kind, StringType) else raw.try_cast(kind)


def _lost(headers: list[tuple[str, ...]], cells: StructType, read: FileRead) -> Column:
    """The rescued data: cells of unknown names or of the wrong type, and surplus cells of lines."""
    broken = F.create_map(F.lit("_corrupt_record"), F.col(CORRUPT).cast("variant"))
    rescued: Column = F.lit(None).cast("map<string,variant>")
    for index, header in enumerate(headers):
        surplus = [F.col(name).isNotNull() for name in cells.names[len(header) :]]
        # Spark complains of lines that are shorter or longer than the widest header.
        too_long = reduce(or_, surplus) if surplus else F.lit(True)
        lost = F.when(F.col(CORRUPT).isNotNull() & too_long, broken).otherwise(
            _misfits(header, headers, read)
        )
        rescued = lost if len(headers) == 1 else F.when(F.col(_HEADER) == index, lost).otherwise(rescued)
    return rescued


def _misfits(header: tuple[str, ...], headers: list[tuple[str, ...]], read: FileRead) -> Column:
    fields = {field.name: field for field in read.data.fields}
    pairs = []
    for position, name in enumerate(header):
        value, field = F.col(f"__c{position}"), fields.get(name)
        if field is not None and header.index(name) == position:
            if isinstance(field.dataType, StringType):
                continue
            value = F.when(_typed(field, headers, read).isNull(), value)
        pairs.append(F.struct(F.lit(name).alias("key"), value.cast("variant").alias("value")))
    if not pairs:
        return F.lit(None).cast("map<string,variant>")
    filled = F.filter(F.array(*pairs), lambda pair: pair["value"].isNotNull())
    return F.map_from_entries(filled)
