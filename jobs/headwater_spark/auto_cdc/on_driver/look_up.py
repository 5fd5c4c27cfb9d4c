"""Looks up the rows of a small batch's keys in a Delta table through its log and Parquet files, without a Spark job."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.types import StructType

from headwater.storage.delta_tables import delta_table
from headwater.storage.place import Place
from headwater_spark.auto_cdc.on_driver.numbered_scan import scan_numbered
from headwater_spark.auto_cdc.on_driver.rows import is_plain, is_text, local_frame
from headwater_spark.delta_writes.file_rewrite import DataFile

# A table is read without Spark where the files that may have the batch's keys have at most so many rows and bytes.
MAX_SCANNED_ROWS, MAX_SCANNED_BYTES = 3_000_000, 256 * 1024 * 1024
_MANY_FILES = 2_000
# Keys that Arrow compares as Spark does, with statistics that bound them exactly.
_SEARCHABLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.DateType)
# Features that affect neither how rows are stored in files nor computed columns.
_SIMPLE_FEATURES = {
    "appendOnly",
    "invariants",
    "checkConstraints",
    "changeDataFeed",
    "clustering",
    "domainMetadata",
}
# Deletes rows without moving the others: files are read without the rows that their vectors name.
_VECTORS = "deletionVectors"
_WRITER_WITH_FEATURES, _WRITER_WITHOUT = 7, 4
# Paths that mean the same as they are and URL-encoded, below the table's folder.
_PLAIN_PATH = re.compile(r"[A-Za-z0-9._=-]+(/[A-Za-z0-9._=-]+)*")
_NO_PLAIN_PATH = "a file's path is not a plain one"


@dataclass(frozen=True)
class MatchingRows:
    """Rows of a table's version as Arrow, and their ``files``.

    ``file_of``: for each row the path of its file. ``obstacle``: why these files can't simply be replaced by others; None
    where they can. ``row_in_file``: for each row its number in its file; None where the table takes no deletion vectors.
    """

    version: int
    rows: Any
    file_of: Any
    files: Mapping[str, DataFile]
    obstacle: str | None
    has_change_feed: bool
    row_in_file: Any = None


def rows_about(
    spark: SparkSession, path: Place, keys: Sequence[str], key_rows: Any, *, schema: StructType | None = None
) -> DataFrame | None:
    """The rows of a Delta table whose keys may be among those of ``key_rows``, read without a Spark job.

    Args:
        key_rows: Arrow rows with the columns ``keys``.
        schema: the table's, where it is known.

    Returns:
        a local frame; it may have rows of other keys, too. None where Spark has to read the table: features or types that
        differ between readers, partitions, or too many rows.
    """
    log = _log(path)
    schema = schema or _schema(log)
    matches = _matching_keys(path, log, schema, keys, key_rows)
    return None if isinstance(matches, str) else local_frame(spark, matches.rows, schema)


def find_rows(path: Place, keys: Sequence[str], key_rows: Any, schema: StructType) -> MatchingRows | str:
    """The rows that ``rows_about`` returns, by file; or why Spark has to read them."""
    return _matching_keys(path, _log(path), schema, keys, key_rows)


def keys_about(path: Place, keys: Sequence[str], key_rows: Any) -> Any:
    """The keys of the rows that ``rows_about`` returns, as Arrow; None where Spark has to read the table."""
    log = _log(path)
    matches = _matching_keys(path, log, _schema(log), keys, key_rows, columns=keys)
    return None if isinstance(matches, str) else matches.rows


def is_plain_table(path: Place) -> bool:
    """Whether a table's features and columns let its rows move from file to file without anything else to update."""
    log = _log(path)
    return log.protocol().min_reader_version == 1 and _is_movable(log)


def may_be_written_from_the_driver(path: Place) -> bool:
    """As ``is_plain_table``, and also of tables whose only other feature is deletion vectors."""
    log = _log(path)
    return _unread_features(log) is None and _is_movable(log)


def _is_movable(log: Any) -> bool:
    return not log.metadata().partition_columns and _obstacle(log) is None


def has_all_keys(path: Place, keys: Sequence[str], key_rows: Any) -> bool:
    """Whether a Delta table certainly has a row of each of the keys of ``key_rows``, Arrow rows; without a Spark job."""
    log = _log(path)
    schema = _schema(log)
    kinds = {field.name: field.dataType for field in schema.fields}
    if not all(isinstance(kinds.get(key), _SEARCHABLE) or is_text(kinds.get(key)) for key in keys):
        return False
    matches = _matching_keys(path, log, schema, keys, key_rows, columns=keys)
    if isinstance(matches, str):
        return False
    wanted = key_rows.select(list(keys))
    missing = wanted.join(matches.rows.cast(wanted.schema), list(keys), join_type="left anti")
    return bool(missing.num_rows == 0)


def _log(path: Place) -> Any:
    return delta_table(path)


def _schema(log: Any) -> StructType:
    return StructType.fromJson(json.loads(log.schema().to_json()))


def _unread_features(log: Any) -> str | None:
    """Why a table's files can't be read here; None where they can."""
    protocol = log.protocol()
    features = set(protocol.reader_features or ())
    if protocol.min_reader_version == 1 or features == {_VECTORS}:
        return None
    return f"the table has {', '.join(sorted(features - {_VECTORS})) or 'a feature that readers differ in'}"


def _matching_keys(
    place: Place,
    log: Any,
    schema: StructType,
    keys: Sequence[str],
    key_rows: Any,
    columns: Sequence[str] | None = None,
) -> MatchingRows | str:
    """Rows that may have the keys of ``key_rows``; only ``columns``, if they are named."""
    unread = _unread_features(log)
    if unread is not None:
        return unread
    if log.metadata().partition_columns:
        return "the table is partitioned"
    if not is_plain(schema):
        return "a column's type is not read alike by all readers"
    names = {field.name.lower(): field for field in schema.fields}
    fields = [names[key.lower()] for key in keys if key.lower() in names]
    searchable = [f.name for f in fields if isinstance(f.dataType, _SEARCHABLE) or is_text(f.dataType)]
    key_of = {f.name: key for f, key in zip(fields, keys, strict=True)} if len(fields) == len(keys) else {}
    if not key_of or not searchable:
        return "no key is of a type that files are searched by"
    return _matching(
        place, log, [(name, key_rows.column(key_of[name]).combine_chunks()) for name in searchable], columns
    )


def _matching(
    place: Place, log: Any, sought: list[tuple[str, Any]], columns: Sequence[str] | None
) -> MatchingRows | str:
    """The rows that have one of the sought values in each of the columns, unless too many would have to be scanned."""
    import pyarrow as pa
    from pyarrow import compute

    actions = pa.table(log.get_add_actions(flatten=True))
    if actions.num_rows == 0:
        return "the table has no file yet"
    if actions.num_rows > _MANY_FILES:
        return f"the table has more than {_MANY_FILES} files"
    may_match = pa.array([True] * actions.num_rows)
    form, condition = pa.schema(log.schema().to_arrow()), None
    for name, values in sought:
        low, high = compute.min_max(values).values()
        if f"min.{name}" in actions.column_names:
            below = compute.less(actions[f"max.{name}"], low.cast(actions.schema.field(f"max.{name}").type))
            above = compute.greater(
                actions[f"min.{name}"], high.cast(actions.schema.field(f"min.{name}").type)
            )
            out = compute.fill_null(compute.or_(below, above), False)
            may_match = compute.and_(may_match, compute.invert(out))
        field, kind = compute.field(name), form.field(name).type
        part = (field >= low.cast(kind)) & (field <= high.cast(kind)) & field.isin(values.cast(kind).unique())
        condition = part if condition is None else condition & part
    candidates = actions.filter(may_match)
    counts = candidates["num_records"].to_pylist()
    if None in counts:
        return "a file's number of rows is not known"
    if sum(counts) > MAX_SCANNED_ROWS or sum(candidates["size_bytes"].to_pylist()) > MAX_SCANNED_BYTES:
        return "too many rows share files with the batch's keys"
    if _VECTORS in (log.protocol().reader_features or ()):
        return _numbered(place, log, candidates, condition, [name for name, _ in sought], columns)
    known = _dataset(log)
    names = None if columns is None else [name for name in known.schema.names if name in columns]
    rows = _without(known, set(actions["path"].to_pylist()) - set(candidates["path"].to_pylist()))
    return _scanned(log, rows.scanner(columns=names, filter=condition), candidates)


def _dataset(log: Any) -> Any:
    from pyarrow import dataset as ds

    # Spark writes times as INT96, which Arrow reads as nanoseconds by default: these end in 2262.
    options = ds.ParquetReadOptions(coerce_int96_timestamp_unit="us")
    return log.to_pyarrow_dataset(parquet_read_options=options)


def _without(known: Any, paths: set[str]) -> Any:
    """The files of a dataset without those of ``paths``, and without what delta-rs says about the values in them.

    It takes a bound that a file's statistics do not have (of a column behind the 32nd, or one that the table's properties
    leave out) for NULL, and Arrow would skip the file.
    """
    from pyarrow import dataset as ds

    kept = [file.path for file in known.get_fragments() if file.path not in paths]
    files = [known.format.make_fragment(path, known.filesystem) for path in kept]
    return ds.FileSystemDataset(files, known.schema, known.format, known.filesystem)


def _scanned(log: Any, scanner: Any, candidates: Any) -> MatchingRows:
    import pyarrow as pa

    batches, file_of = [], []
    for tagged in scanner.scan_batches():
        if tagged.record_batch.num_rows:
            batches.append(tagged.record_batch)
            file_of += [tagged.fragment.path] * tagged.record_batch.num_rows
    names = ("path", "size_bytes", "modification_time", "num_records")
    entries = zip(*(candidates[name].to_pylist() for name in names), strict=True)
    data_files = {entry[0]: DataFile(*entry) for entry in entries}
    files = {path: data_files[path] for path in dict.fromkeys(file_of) if path in data_files}
    obstacle = _obstacle(log)
    if obstacle is None and not (len(files) == len(set(file_of)) and all(map(_PLAIN_PATH.fullmatch, files))):
        obstacle = _NO_PLAIN_PATH
    feed = _is_on(log, "delta.enableChangeDataFeed")
    table = pa.Table.from_batches(batches, scanner.projected_schema)
    return MatchingRows(log.version(), table, pa.array(file_of, pa.string()), files, obstacle, feed)


def _numbered(
    place: Place, log: Any, candidates: Any, condition: Any, sought: Sequence[str], columns: Sequence[str] | None
) -> MatchingRows | str:  # fmt: skip
    """As ``_scanned``, of a table that may have deletion vectors."""
    import pyarrow as pa

    if not all(map(_PLAIN_PATH.fullmatch, candidates["path"].to_pylist())):
        return _NO_PLAIN_PATH
    rows = scan_numbered(place, log, candidates, condition, sought, columns)
    if isinstance(rows, str):
        return rows
    file_of, feed = pa.array(rows.file_of, pa.string()), _is_on(log, "delta.enableChangeDataFeed")
    # A table may keep vectors and take no more of them.
    numbers = rows.row_in_file if _is_on(log, "delta.enableDeletionVectors") else None
    return MatchingRows(log.version(), rows.rows, file_of, rows.files, _obstacle(log), feed, numbers)


def _is_on(log: Any, name: str) -> bool:
    return str(log.metadata().configuration.get(name, "false")).lower() == "true"


def _obstacle(log: Any) -> str | None:
    """What prevents moving a table's rows from file to file; None where nothing does."""
    protocol = log.protocol()
    if protocol.min_writer_version < _WRITER_WITH_FEATURES:
        if protocol.min_writer_version > _WRITER_WITHOUT:
            return f"the table needs writers of version {protocol.min_writer_version}"
    elif features := set(protocol.writer_features or ()) - {*_SIMPLE_FEATURES, _VECTORS}:
        return f"the table has {', '.join(sorted(features))}"
    fields = json.loads(log.schema().to_json())["fields"]
    if all(set(field.get("metadata", {})) <= {"comment"} for field in fields):
        return None
    return "a column is computed, or has a default"
