"""The columns of files: as Spark infers them, or STRING for all unless types are to be inferred."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from typing import TypeVar

from pyspark.errors import PySparkException
from pyspark.sql import DataFrameReader, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from headwater.errors import SchemaNotInferred
from headwater.metrics.file_listing import ListedFile
from headwater.storage.place import is_s3
from headwater_spark.messages.source_errors import describe
from headwater_spark.sources.cloud_files.merging import union, without_void
from headwater_spark.sources.cloud_files.new_files import csv_columns, footer_key, is_there
from headwater_spark.sources.cloud_files.options import CloudFilesOptions

_T = TypeVar("_T")
_AT_ONCE = 16
# The sample sizes of Auto Loader.
_SAMPLE_FILES = 1000
_SAMPLE_BYTES = 50_000_000_000


def inferred_schema(
    session: SparkSession, files: Sequence[ListedFile], options: CloudFilesOptions
) -> StructType:
    """The fields of the files, without partition columns; of more than 1,000 files or 50 GB, of a sample.

    Raises:
        SchemaNotInferred: where Spark can't read them.
    """
    sample = _sample([file for file in files if file.size > 0])
    if not sample:
        return StructType()
    # Names that differ in case only would be an error: they are told apart here, and one of them is rescued later.
    clone = SparkSession(session.sparkContext, session._jsparkSession.cloneSession())  # noqa: SLF001 - no public way
    clone.conf.set("spark.sql.caseSensitive", "true")
    schema = _inferred(clone, sample, options)
    if not schema.fields and options.format not in ("json", "csv"):
        raise SchemaNotInferred(
            f"The columns of the {options.format} files can't be inferred: none of them can be read.",
            where=sample[0],
            remedy="Correct or remove the files, or give the columns with .schema(...).",
        )
    return without_void(union([schema]))


def _inferred(session: SparkSession, paths: Sequence[str], options: CloudFilesOptions) -> StructType:
    """The results for the files that still exist: others may rename or remove files after they were listed."""
    remaining = list(paths)
    while remaining:
        try:
            return _of_format(session, remaining, options)
        except PySparkException as error:
            previous, remaining = remaining, [path for path in remaining if is_there(path)]
            if len(remaining) == len(previous):
                raise SchemaNotInferred(
                    f"The columns of the {options.format} files can't be inferred: {describe(error)}",
                    where=previous[0],
                    remedy="Correct or remove the file, or give the columns with .schema(...).",
                ) from None
    return StructType()


def csv_headers(paths: Sequence[str], options: CloudFilesOptions) -> dict[str, tuple[str, ...]]:
    """The columns of each CSV file; none for one that can't be opened: Spark reports it when it reads it."""

    def header(path: str) -> tuple[str, ...] | None:
        with suppress(OSError, EOFError, ValueError, csv.Error):
            return csv_columns(path, options)
        return None

    headers = zip(paths, _of_each(header, paths), strict=True)
    return {path: columns for path, columns in headers if columns is not None}


def file_schemas(session: SparkSession, paths: Sequence[str], source_format: str) -> list[StructType]:
    """The different schemas of Parquet, ORC or Avro files; one file of each is opened by Spark.

    An invalid file is skipped: Spark reports it when it reads it.
    """

    def footer(path: str) -> bytes | None:
        with suppress(OSError, ValueError, IndexError):  # pyarrow's errors are ValueErrors
            return footer_key(path, source_format)
        return None

    keys = zip(_of_each(footer, paths), paths, strict=True)
    groups = {key: path for key, path in keys if key is not None}
    reader = session.read.format(source_format).option("recursiveFileLookup", "true")
    schemas = []
    for path in groups.values():
        with suppress(PySparkException):
            schemas.append(reader.load(path).schema)
    return schemas


def _of_each(look: Callable[[str], _T], paths: Sequence[str]) -> list[_T]:
    """What a look into each file gives; requests to a store go side by side."""
    if not any(map(is_s3, paths)):
        return [look(path) for path in paths]
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="looks") as pool:
        return list(pool.map(look, paths))


def _of_format(session: SparkSession, paths: list[str], options: CloudFilesOptions) -> StructType:
    if options.format == "json":
        return _strings_unless_typed(_json(session, paths, options), options)
    if options.format == "csv":
        return _csv(session, paths, options)
    return content_schema(session, paths, options)


def content_schema(session: SparkSession, paths: Sequence[str], options: CloudFilesOptions) -> StructType:
    """The fields of Parquet, ORC and Avro files by their footers; of XML files, which are read for it."""
    if options.format != "xml":
        return union(file_schemas(session, paths, options.format))
    if not paths:
        return StructType()
    corrupt = "__headwater_corrupt"
    reader = _reader(session, options).option("columnNameOfCorruptRecord", corrupt)
    schema = reader.format("xml").option("inferSchema", str(options.infer_types)).load(list(paths)).schema
    return StructType([field for field in schema.fields if field.name != corrupt])


def _json(session: SparkSession, paths: list[str], options: CloudFilesOptions) -> StructType:
    corrupt = "__headwater_corrupt"
    reader = _reader(session, options).option("columnNameOfCorruptRecord", corrupt)
    schema = reader.json(paths).schema
    return StructType([field for field in schema.fields if field.name != corrupt])


def _csv(session: SparkSession, paths: list[str], options: CloudFilesOptions) -> StructType:
    by_header: dict[tuple[str, ...], list[str]] = {}
    for path, header in csv_headers(paths, options).items():
        by_header.setdefault(header, []).append(path)
    plain = (StructType([StructField(name, StringType()) for name in header]) for header in by_header)
    if not options.infer_types:
        return union(plain)
    reader = _reader(session, options).option("header", str(options.header)).option("inferSchema", "true")
    return union(reader.csv(group).schema for header, group in by_header.items() if header)


def _reader(session: SparkSession, options: CloudFilesOptions) -> DataFrameReader:
    # Rows are read strictly later; the columns come from what can be read.
    reader = session.read.options(**options.native).option("recursiveFileLookup", "true")
    return reader.option("ignoreCorruptFiles", "true")


def _strings_unless_typed(schema: StructType, options: CloudFilesOptions) -> StructType:
    if options.infer_types:
        return schema
    return StructType([StructField(field.name, StringType()) for field in schema.fields])


def _sample(files: Sequence[ListedFile]) -> list[str]:
    paths, size = [], 0
    for file in islice(files, _SAMPLE_FILES):
        if size > _SAMPLE_BYTES:
            break
        paths.append(file.path)
        size += file.size
    return paths
