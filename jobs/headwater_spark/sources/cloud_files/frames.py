"""The streaming frames of a cloudFiles read: Spark's native file source, and expressions over it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import ArrayType, StringType, StructField, StructType, VariantType

from headwater.metrics.file_listing import instant_ns
from headwater.storage.globs import plain_part
from headwater.storage.place import is_s3
from headwater_spark.plans.names import quoted
from headwater_spark.sources.cloud_files.nested_fields import any_present, narrowed, surplus_parts
from headwater_spark.sources.cloud_files.options import CloudFilesOptions, EvolutionMode
from headwater_spark.sources.cloud_files.partitions import partition_value
from headwater_spark.sources.cloud_files.rescue import LATE_FILE
from headwater_spark.sources.plan_sources import FORMAT_OPTION, MARK, OVERWRITES_OPTION, PATH_OPTION

PATH = "__headwater_path"
TEXT = "__headwater_text"
RECORD = "__headwater_record"
CORRUPT = "__headwater_corrupt"


# Names without a sign that a pattern could give a meaning to.
_PLAIN = re.compile(r"[\w.=+@ -]+")
# Spark's streams refuse these options; a condition on the files' time does the same.
_TIMES = ("modifiedafter", "modifiedbefore")


@dataclass(frozen=True)
class FileRead:
    """A read that is fully decided. ``data``: columns from the files' content; ``partitions``: from their paths.

    ``checked``: the URIs of files that were examined before the start, None where that is not needed; a file that
    is not among them fails the query. ``skipped``: URIs of files that count as read. ``headers``: of CSV files.
    ``full_schema``: of columnar files, the data with the fields to rescue. ``resumes_without``: files of the planned batch may be
    missing; decided at the start, from its plan. ``proven``: the checked JSON files certainly have no unknown key; ``fits``:
    nor a value that does not fit. ``listed``: how many files the folder had at the start.
    """

    path: str
    options: CloudFilesOptions
    data: StructType
    partitions: StructType
    checked: tuple[str, ...] | None = None
    skipped: tuple[str, ...] = ()
    headers: Mapping[str, tuple[str, ...]] | None = None
    full_schema: StructType | None = None
    proven: bool = False
    streaming: bool = True
    fits: bool = False
    resumes_without: bool = True
    listed: int | None = None

    @property
    def loaded(self) -> str:
        """The path for Spark, which fails on one that is not there; a prefix of S3 is gone as soon as nothing lies below it.

        Of a pattern it accepts that nothing matches, and braces around one name match just that name, without a listing.
        """
        path = self.path.rstrip("/")
        folder, _, name = path.rpartition("/")
        plain = is_s3(path) and path == plain_part(path) and folder != "s3:/" and _PLAIN.fullmatch(name)
        return f"{folder}/{{{name}/}}" if plain and self.streaming else self.path

    @property
    def checks_fields(self) -> bool:
        """Whether fields that the schema lacks matter."""
        return self.options.rescued is not None or self.options.mode is not EvolutionMode.NONE


def native_reader(session: SparkSession, read: FileRead, spark_format: str) -> Any:
    """Spark's reader with the options of the read."""
    options = read.options
    native = {key: value for key, value in options.native.items() if key.lower() not in _TIMES}
    made = DataStreamReader(session) if read.streaming else DataFrameReader(session)
    reader: Any = made.format(spark_format).options(**native)
    for name in _TIMES:
        if moment := options.native_option(name):
            reader = reader.option(f"{MARK}{name}", moment)
    reader = reader.option("recursiveFileLookup", "true").option(FORMAT_OPTION, options.format)
    if read.loaded != read.path:
        reader = reader.option(PATH_OPTION, read.path)
    if options.max_files is not None:
        reader = reader.option("maxFilesPerTrigger", options.max_files)
    elif options.max_bytes is not None:  # Spark refuses both
        reader = reader.option("maxBytesPerTrigger", options.max_bytes)
    if options.allow_overwrites:
        reader = reader.option(OVERWRITES_OPTION, "true")
    if options.mode is EvolutionMode.FAIL and read.resumes_without:
        # After a failure over new fields the user may remove the file: its batch is then repeated without it.
        reader = reader.option("ignoreMissingFiles", "true")
    # Spark's own default forgets, and then ignores, files a week older than the newest.
    return reader.option("maxFileAge", options.max_file_age)


def guarded(frame: DataFrame, read: FileRead, *, opened: bool = False) -> DataFrame:
    """Leave out the files to skip; fail on a file that was not examined before the start.

    It is one condition on the file only, so that Spark prunes files without opening them. ``opened``: fail at a file's first
    row instead, which is cheaper: rows need no ``_metadata``.
    """
    path, time = F.col("_metadata.file_path"), F.col("_metadata.file_modification_time")
    out: list[Column] = [path.isin(list(read.skipped))] if read.skipped else []
    if after := instant_ns(read.options.native_option("modifiedAfter") or None):
        out.append(time <= F.timestamp_micros(F.lit(after // 1000)))
    if before := instant_ns(read.options.native_option("modifiedBefore") or None):
        out.append(time >= F.timestamp_micros(F.lit(before // 1000)))
    otherwise = F.lit(True)
    if read.checked is not None:
        name = F.input_file_name() if opened else path
        # Spark spells a file's URI with three slashes here, and with one in _metadata.
        checked = [re.sub("^file:", "file://", uri) for uri in read.checked] if opened else list(read.checked)
        late = F.raise_error(F.concat(F.lit(LATE_FILE), name)).cast("boolean")
        otherwise = F.when(name.isin(checked), F.lit(True)).otherwise(late)
    if opened and out:
        return frame.where(~reduce(or_, out)).where(otherwise)
    if not out:
        return frame if read.checked is None else frame.where(otherwise)
    return frame.where(F.when(reduce(or_, out), F.lit(False)).otherwise(otherwise))


def with_path_columns(frame: DataFrame, read: FileRead, columns: Sequence[Column]) -> DataFrame:
    """The columns, and after them the partition columns; before the rescued one where it is the last."""
    partitions = [partition_value(field, F.col("_metadata.file_path")) for field in read.partitions.fields]
    if read.options.rescued is not None:
        return frame.select(*columns[:-1], *partitions, columns[-1])
    return frame.select(*columns, *partitions)


def native_frame(session: SparkSession, read: FileRead) -> DataFrame:
    """Files as Spark reads them with the schema, nothing rescued, nothing checked."""
    reader = native_reader(session, read, read.options.format)
    if read.options.format == "csv" and not read.options.native_option("header"):
        reader = reader.option("header", "true")
    frame = guarded(reader.schema(read.data).load(read.loaded), read)
    if not read.partitions.fields:
        return frame
    names = [name for name in frame.columns if name not in read.partitions.names]
    return with_path_columns(frame, read, [F.col(quoted(name)) for name in names])


def columnar_frame(session: SparkSession, read: FileRead) -> DataFrame:
    """Parquet, ORC, Avro and XML: fields that the schema lacks are read as well, and folded into the rescued column.

    So are records of XML that do not fit their types or are no XML, whole.
    """
    full_schema = read.data if read.full_schema is None else read.full_schema
    reader, corrupt = native_reader(session, read, read.options.format), StructType()
    if read.options.format == "xml" and read.options.rescued is not None:
        reader = reader.option("columnNameOfCorruptRecord", CORRUPT)
        corrupt = corrupt.add(CORRUPT, StringType())
    frame = guarded(reader.schema(StructType([*full_schema.fields, *corrupt.fields])).load(read.loaded), read)
    types = {field.name: field.dataType for field in full_schema.fields}
    columns = [
        narrowed(_column(field.name), types[field.name], field.dataType).alias(field.name)
        for field in read.data.fields
    ]
    if read.options.rescued is not None:
        parts = [
            *surplus_parts(_column, full_schema.fields, read.data.fields),
            *(_column(field.name).alias("_corrupt_record") for field in corrupt.fields),
        ]
        columns.append(_folded(parts).alias(read.options.rescued))
    return with_path_columns(frame, read, columns)


def _folded(parts: Sequence[Column]) -> Column:
    nothing = F.lit(None).cast("string")
    if not parts:
        return nothing
    path = F.col("_metadata.file_path").alias("_file_path")
    return F.when(any_present(parts), F.to_json(F.struct(*parts, path))).otherwise(nothing)


def _column(name: str) -> Column:
    return F.col(quoted(name))


def text_lines(session: SparkSession, read: FileRead) -> DataFrame:
    """JSON records as text, one a row: lines (or whole files), arrays taken apart, blank lines left out."""
    reader = native_reader(session, read, "text")
    if read.options.multi_line:
        reader = reader.option("wholetext", "true")
    frame = guarded(reader.load(read.loaded), read)
    lines = frame.where("length(trim(value)) > 0")
    several = F.from_json("value", ArrayType(VariantType()))
    parts = F.when(
        F.startswith(F.ltrim("value"), F.lit("[")),
        F.coalesce(F.transform(several, lambda record: F.to_json(record)), F.array("value")),
    ).otherwise(F.array("value"))
    return lines.select(F.explode(parts).alias(TEXT), F.col("_metadata.file_path").alias(PATH))


def string_columns(count: int) -> StructType:
    """As many text columns, by position."""
    return StructType([StructField(f"__c{index}", StringType()) for index in range(count)])
