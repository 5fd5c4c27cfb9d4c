"""Preparation just before a flow starts: new files, their headers and footers, files to skip or to read again."""

from __future__ import annotations

import json
from dataclasses import replace

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headwater.checkpoints.file_source_log import forget_overwritten
from headwater.checkpoints.layout import FlowCheckpoint
from headwater.checkpoints.offsets import last_committed_batch
from headwater.errors import SourceUnreachable, UnknownFields
from headwater.files.atomic_files import write_atomically
from headwater.metrics.file_listing import ListedFile
from headwater.storage.place import is_s3
from headwater_spark.sources.cloud_files.batch_limit import with_one_limit
from headwater_spark.sources.cloud_files.frames import FileRead
from headwater_spark.sources.cloud_files.inference import content_schema, csv_headers
from headwater_spark.sources.cloud_files.json_proof import Proof, proven
from headwater_spark.sources.cloud_files.merging import evolved
from headwater_spark.sources.cloud_files.nested_fields import unknown_fields
from headwater_spark.sources.cloud_files.new_files import file_uri, listed, planned_file_missing, unseen
from headwater_spark.sources.cloud_files.options import EvolutionMode
from headwater_spark.sources.cloud_files.rescue import UNKNOWN_FIELDS

# Spark's options that do not change which text, numbers and booleans its JSON parser takes.
_HARMLESS = {
    "dateformat", "locale", "modifiedafter", "modifiedbefore", "pathglobfilter", "recursivefilelookup", "timestampformat",
    "timestampntzformat", "timezone",
}  # fmt: skip


def prepared(
    session: SparkSession,
    read: FileRead,
    checkpoint: FlowCheckpoint,
    key: str,
    *,
    careful: bool,
    again: frozenset[str] = frozenset(),
) -> FileRead:
    """The read with its folder's current files, and one limit for its batches.

    ``again``: paths of files that are examined although they were read.

    Raises:
        UnknownFields: in a mode that fails on new fields.
    """
    folder = checkpoint.live_folder()
    try:
        files = listed(read.path, read.options)
    except SourceUnreachable:
        if not is_s3(read.path):
            return read  # Spark reports what is missing
        files = []  # there was something when it was read first
    read = replace(read, listed=len(files))
    if read.options.allow_overwrites:
        forget_overwritten(folder, {f.path: f.modified_ns // 1_000_000 for f in files})
    if not read.options.include_existing:
        read = replace(read, skipped=_existing(checkpoint, key, files))
    both_limits = read.options.max_files is not None and read.options.max_bytes is not None
    if not read.checks_fields and not both_limits:
        return read
    if read.options.mode is EvolutionMode.FAIL:
        read = replace(read, resumes_without=planned_file_missing(folder))
    waiting = unseen(files, folder)
    read = replace(read, options=with_one_limit(read.options, waiting))
    if not read.checks_fields:
        return read
    new = [file for file in waiting if file_uri(file.path) not in read.skipped]
    new += [file for file in files if file.path in again and file not in new]
    if read.options.format == "json":
        return _proven(read, new) if not careful else read
    if read.options.format == "csv":
        return _with_headers(read, new)
    return _with_extra(session, read, new)


def _proven(read: FileRead, new: list[ListedFile]) -> FileRead:
    if read.options.multi_line or read.options.native_option("lineSep") or not read.data.fields:
        return read
    proof = proven(new, read.data)
    if proof is Proof.NOTHING:
        return read
    fits = proof is Proof.VALUES and all(key.lower() in _HARMLESS for key in read.options.native)
    checked = tuple(file_uri(file.path) for file in new) + read.skipped
    return replace(read, proven=True, fits=fits, checked=checked)


def _with_headers(read: FileRead, new: list[ListedFile]) -> FileRead:
    headers = csv_headers([file.path for file in new if file.size > 0], read.options)
    schema_names = {name.lower() for name in (*read.data.names, *read.partitions.names)}
    _check(read, sorted({n for header in headers.values() for n in header if n.lower() not in schema_names}))
    return replace(read, headers=headers, checked=tuple(file_uri(f.path) for f in new) + read.skipped)


def _with_extra(session: SparkSession, read: FileRead, new: list[ListedFile]) -> FileRead:
    seen = content_schema(session, [f.path for f in new if f.size > 0], read.options)
    partitions = {name.lower() for name in read.partitions.names}
    seen = StructType([field for field in seen.fields if field.name.lower() not in partitions])
    unknown = unknown_fields(read.data, seen)
    _check(read, unknown)
    full = evolved(read.data, seen) if unknown and read.options.rescued is not None else None
    return replace(read, full_schema=full, checked=tuple(file_uri(f.path) for f in new) + read.skipped)


def _check(read: FileRead, names: list[str]) -> None:
    mode = read.options.mode
    if names and (mode.evolves or mode is EvolutionMode.FAIL):
        raise UnknownFields(f"{UNKNOWN_FIELDS}{', '.join(names)} in files below {read.path}")


def _existing(checkpoint: FlowCheckpoint, key: str, files: list[ListedFile]) -> tuple[str, ...]:
    """The files that existed at the first start of the live epoch: they count as read until a batch is done."""
    epoch = checkpoint.live_folder()
    records = [checkpoint.folder / f"existing-{epoch.name}-{key}.json"]
    begun = last_committed_batch(epoch) is not None
    if not records[0].is_file():
        if begun:
            # Not the first start: only the folder's spelling has changed. Files that arrived since must not be left out.
            records = sorted(checkpoint.folder.glob(f"existing-{epoch.name}-*.json"))
        else:
            write_atomically(records[0], json.dumps([f.path for f in files], indent=0) + "\n")
    paths = {path: None for record in records for path in json.loads(record.read_text(encoding="utf-8"))}
    if begun and not unseen([f for f in files if f.path in paths], epoch):
        return ()  # Spark's own log knows them now
    return tuple(file_uri(path) for path in paths)
