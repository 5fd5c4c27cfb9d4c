"""What Delta tables hold about the keys of a small batch, through their log and Parquet files alone: without a Spark job."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.types import StructType

from headwater_spark.auto_cdc.on_driver.rows import is_plain, is_text, local_frame
from headwater_spark.delta_writes.file_rewrite import DataFile

# A table is asked without Spark where the files that may hold the batch's keys have at most so many rows and bytes.
ASKED_ROWS, ASKED_BYTES = 3_000_000, 256 * 1024 * 1024
_MANY_FILES = 2_000
# Keys that Arrow compares as Spark does, with statistics that bound them exactly.
_FOUND_BY = (T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.DateType)
# Features that say nothing of how rows lie in files, nor of columns that are computed.
_SIMPLE_FEATURES = {
    "appendOnly",
    "invariants",
    "checkConstraints",
    "changeDataFeed",
    "clustering",
    "domainMetadata",
}
_WRITER_WITH_FEATURES, _WRITER_WITHOUT = 7, 4
# Paths that mean the same as they are and URL-encoded, below the table's folder.
_PLAIN_PATH = re.compile(r"[A-Za-z0-9._=-]+(/[A-Za-z0-9._=-]+)*")


@dataclass(frozen=True)
class FoundRows:
    """Rows of a table's version as Arrow, and where they lie. ``files``: those that rows were found in.

    ``file_of``: for each row the path of its file. ``against``: what would have to be carried beside the rows where these files
    were replaced by others; None where that is nothing. ``fed``: whether the table has a change feed.
    """

    version: int
    rows: Any
    file_of: Any
    files: Mapping[str, DataFile]
    against: str | None
    fed: bool


def rows_about(
    spark: SparkSession, path: Path, keys: Sequence[str], asking: Any, *, schema: StructType | None = None
) -> DataFrame | None:
    """The rows of a Delta table whose keys may be among those of ``asking``, read without a Spark job.

    Args:
        asking: Arrow rows with the columns ``keys``.
        schema: the table's, where it is known.

    Returns:
        a local frame; it may hold more rows than asked for. None where the table has to be read by Spark: features or
        types that differ between readers, partitions, or too much to look through.
    """
    log = _log(path)
    schema = schema or _schema(log)
    found = _about(log, schema, keys, asking)
    return None if isinstance(found, str) else local_frame(spark, found.rows, schema)


def find_rows(path: Path, keys: Sequence[str], asking: Any, schema: StructType) -> FoundRows | str:
    """The rows that ``rows_about`` gives, as they lie in their files; or why Spark has to read them."""
    return _about(_log(path), schema, keys, asking)


def keys_about(path: Path, keys: Sequence[str], asking: Any) -> Any:
    """The keys of the rows that ``rows_about`` gives, as Arrow; None where the table has to be read by Spark."""
    log = _log(path)
    found = _about(log, _schema(log), keys, asking, only=keys)
    return None if isinstance(found, str) else found.rows


def is_plain_table(path: Path) -> bool:
    """Whether a table's features and columns let its rows move from file to file with nothing else to be carried."""
    log = _log(path)
    return (
        log.protocol().min_reader_version == 1
        and not log.metadata().partition_columns
        and _against(log) is None
    )


def all_known(path: Path, keys: Sequence[str], asking: Any) -> bool:
    """Whether a Delta table certainly has a row of each of the keys of ``asking``, Arrow rows; without a Spark job."""
    log = _log(path)
    schema = _schema(log)
    kinds = {field.name: field.dataType for field in schema.fields}
    if not all(isinstance(kinds.get(key), _FOUND_BY) or is_text(kinds.get(key)) for key in keys):
        return False
    found = _about(log, schema, keys, asking, only=keys)
    if isinstance(found, str):
        return False
    asked = asking.select(list(keys))
    return bool(asked.join(found.rows.cast(asked.schema), list(keys), join_type="left anti").num_rows == 0)


def _log(path: Path) -> Any:
    from deltalake import DeltaTable as LogReader

    return LogReader(str(path))


def _schema(log: Any) -> StructType:
    return StructType.fromJson(json.loads(log.schema().to_json()))


def _about(
    log: Any, schema: StructType, keys: Sequence[str], asking: Any, only: Sequence[str] | None = None
) -> FoundRows | str:
    """Rows that may have the keys of ``asking``, ``only`` some columns of them."""
    if log.protocol().min_reader_version > 1:
        features = sorted(log.protocol().reader_features or ())
        return f"the table has {', '.join(features) or 'a feature that readers differ in'}"
    if log.metadata().partition_columns:
        return "the table is partitioned"
    if not is_plain(schema):
        return "a column's type is not read alike by all readers"
    names = {field.name.lower(): field for field in schema.fields}
    fields = [names[key.lower()] for key in keys if key.lower() in names]
    found_by = [f.name for f in fields if isinstance(f.dataType, _FOUND_BY) or is_text(f.dataType)]
    wanted = {f.name: key for f, key in zip(fields, keys, strict=True)} if len(fields) == len(keys) else {}
    if not wanted or not found_by:
        return "no key is of a type that files are searched by"
    return _matching(log, [(name, asking.column(wanted[name]).combine_chunks()) for name in found_by], only)


def _matching(log: Any, sought: list[tuple[str, Any]], only: Sequence[str] | None) -> FoundRows | str:
    """The rows that have one of the sought values in each of the columns, where not too many have to be looked at."""
    import pyarrow as pa
    from pyarrow import compute
    from pyarrow import dataset as ds

    actions = pa.table(log.get_add_actions(flatten=True))
    if actions.num_rows == 0:
        return "the table has no file yet"
    if actions.num_rows > _MANY_FILES:
        return f"the table has more than {_MANY_FILES} files"
    may_match = pa.array([True] * actions.num_rows)
    # Spark writes times in a form whose years end in 2262 unless they are read so.
    options = ds.ParquetReadOptions(coerce_int96_timestamp_unit="us")
    rows = log.to_pyarrow_dataset(parquet_read_options=options)
    condition = None
    for name, values in sought:
        low, high = compute.min_max(values).values()
        if f"min.{name}" in actions.column_names:
            below = compute.less(actions[f"max.{name}"], low.cast(actions.schema.field(f"max.{name}").type))
            above = compute.greater(
                actions[f"min.{name}"], high.cast(actions.schema.field(f"min.{name}").type)
            )
            out = compute.fill_null(compute.or_(below, above), False)
            may_match = compute.and_(may_match, compute.invert(out))
        field, kind = compute.field(name), rows.schema.field(name).type
        part = (field >= low.cast(kind)) & (field <= high.cast(kind)) & field.isin(values.cast(kind).unique())
        condition = part if condition is None else condition & part
    may = actions.filter(may_match)
    counts = may["num_records"].to_pylist()
    if None in counts:
        return "a file's number of rows is not known"
    if sum(counts) > ASKED_ROWS or sum(may["size_bytes"].to_pylist()) > ASKED_BYTES:
        return "too many rows share files with the batch's keys"
    names = None if only is None else [name for name in rows.schema.names if name in only]
    return _found(log, rows.scanner(columns=names, filter=condition), may)


def _found(log: Any, scanner: Any, may: Any) -> FoundRows:
    import pyarrow as pa

    batches, file_of = [], []
    for tagged in scanner.scan_batches():
        if tagged.record_batch.num_rows:
            batches.append(tagged.record_batch)
            file_of += [tagged.fragment.path] * tagged.record_batch.num_rows
    known = {
        path: DataFile(path, size, modified, rows)
        for path, size, modified, rows in zip(
            *(may[name].to_pylist() for name in ("path", "size_bytes", "modification_time", "num_records")),
            strict=True,
        )
    }
    files = {path: known[path] for path in dict.fromkeys(file_of) if path in known}
    against = _against(log)
    if against is None and not (len(files) == len(set(file_of)) and all(map(_PLAIN_PATH.fullmatch, files))):
        against = "a file's path is not a plain one"
    fed = log.metadata().configuration.get("delta.enableChangeDataFeed", "false").lower() == "true"
    table = pa.Table.from_batches(batches, scanner.projected_schema)
    return FoundRows(log.version(), table, pa.array(file_of, pa.string()), files, against, fed)


def _against(log: Any) -> str | None:
    """What of a table would have to be carried along where its rows go from file to file; None where that is nothing."""
    protocol = log.protocol()
    if protocol.min_writer_version < _WRITER_WITH_FEATURES:
        if protocol.min_writer_version > _WRITER_WITHOUT:
            return f"the table needs writers of version {protocol.min_writer_version}"
    elif others := set(protocol.writer_features or ()) - _SIMPLE_FEATURES:
        return f"the table has {', '.join(sorted(others))}"
    fields = json.loads(log.schema().to_json())["fields"]
    if all(set(field.get("metadata", {})) <= {"comment"} for field in fields):
        return None
    return "a column is computed, or has a default"
