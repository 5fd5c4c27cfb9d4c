"""The cloudFiles reads of a pipeline: their schemas, their new files, and schema evolution.

Decision 0020.
"""

from __future__ import annotations

import hashlib
import logging
import re
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType, VariantType

from headwater.checkpoints.inferred_schemas import schema_location
from headwater.checkpoints.layout import FlowCheckpoint, flow_checkpoint
from headwater.checkpoints.offsets import last_committed_batch
from headwater.definitions.flow import Flow
from headwater.errors import InvalidSourceOption, SourceUnreachable
from headwater.event_log.folder_listing import FolderListing
from headwater.metrics.stored_files import nothing_at
from headwater.storage.place import Place, is_below, is_s3, place_of
from headwater_spark.plans.schemas import plain_schema
from headwater_spark.sources.cloud_files.csv_frame import csv_frame
from headwater_spark.sources.cloud_files.frames import FileRead, columnar_frame, native_frame
from headwater_spark.sources.cloud_files.hints import apply_hints
from headwater_spark.sources.cloud_files.inference import inferred_schema
from headwater_spark.sources.cloud_files.json_frame import json_frame
from headwater_spark.sources.cloud_files.merging import evolved
from headwater_spark.sources.cloud_files.new_files import listed, unseen
from headwater_spark.sources.cloud_files.options import (
    JAVA_CHARSETS,
    CloudFilesOptions,
    EvolutionMode,
    parse_options,
)
from headwater_spark.sources.cloud_files.partitions import path_partitions
from headwater_spark.sources.cloud_files.schema_log import SchemaLog
from headwater_spark.sources.cloud_files.start import prepared
from headwater_spark.sources.file_addresses import check_cloud_address

_LOG = logging.getLogger("headwater.sources")
_PARTITION = "headwater.partition"
_FIXED = {
    "text": "value STRING",
    "binaryFile": "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY",
}
# The owner of reads outside any function.
AT_IMPORT = "at_import"


@dataclass(frozen=True)
class ReadingFlow:
    """The reader of files. ``owner``: the flow or view whose function has the read; ``checkpoint``: of the running flow."""

    owner: str
    name: str
    checkpoint: FlowCheckpoint

    @classmethod
    def of(cls, flows: Sequence[Flow], state_folder: Place) -> ReadingFlow:
        """The reader while ``flows`` are being evaluated, the outermost first; no flow at the import of a source."""
        if not flows:
            return cls(AT_IMPORT, AT_IMPORT, flow_checkpoint(state_folder, AT_IMPORT, AT_IMPORT))
        outer = flows[0]
        return cls(flows[-1].name, outer.name, flow_checkpoint(state_folder, outer.target, outer.name))


@dataclass(frozen=True)
class CloudRead:
    """One read: where, how, and where its schema is kept. ``key`` distinguishes it from the owner's other reads."""

    path: str
    options: CloudFilesOptions
    user_schema: StructType | None
    log: SchemaLog
    key: str


class CloudFiles:
    """All cloudFiles reads of one resolved pipeline."""

    def __init__(self, session: SparkSession, state_folder: Place) -> None:
        self._session = session
        self._state_folder = state_folder
        self._schemas: dict[Place, StructType] = {}
        self._inferred_from: dict[Place, int] = {}
        self._reads: dict[str, dict[str, CloudRead]] = {}
        self._listings: dict[str, dict[str, FolderListing]] = {}
        self._noted: set[str] = set()
        self._lock = threading.RLock()
        self.careful: set[str] = set()
        # Flows whose files are read again, as in a replay: these files count as new.
        self.again: dict[str, frozenset[str]] = {}

    def frame(
        self,
        path: str,
        user_schema: Any,
        options: Mapping[str, str],
        flow: ReadingFlow,
        *,
        live: bool,
        streaming: bool = True,
    ) -> DataFrame:
        """The stream of a read. ``live``: the flow is about to start, so the folder counts and the schema is kept.
        ``streaming``: else all that is there is read as a batch.

        Raises:
            InvalidSourceOption, SchemaNotInferred, UnsupportedSource: where it can't be read with these options.
            UnknownFields: files have fields that the schema lacks, detected before the start.
        """
        schema = plain_schema(user_schema, None)
        java_charsets = str(self._session.conf.get(JAVA_CHARSETS)).lower() == "true"
        zone = self._session.conf.get("spark.sql.session.timeZone") or "UTC"
        checked = parse_options(
            options, schema_given=schema is not None, java_charsets=java_charsets, time_zone=zone
        )
        self._tell(checked, flow)
        read = self._read(path, checked, schema, flow)
        with self._lock:
            self._reads.setdefault(flow.name, {})[read.key] = read
            full_schema = self._schema(read, keep=live)
        data = StructType([f for f in full_schema.fields if not _is_partition(f)])
        partitions = StructType(
            [StructField(f.name, f.dataType) for f in full_schema.fields if _is_partition(f)]
        )
        decided = FileRead(path, checked, data, partitions, streaming=streaming)
        if live:
            again = self.again.get(flow.name)
            careful = flow.name in self.careful or again is not None
            begun = time.monotonic()
            decided = prepared(
                self._session, decided, flow.checkpoint, read.key, careful=careful, again=again or frozenset()
            )
            self._note_listing(flow.name, read, decided.listed, time.monotonic() - begun)
            decided = decided if again is None else replace(decided, checked=None)
        return self._frame(decided)

    def reads_of(self, flow: str) -> list[CloudRead]:
        """The reads of a flow, if its function was called."""
        return list(self._reads.get(flow, {}).values())

    def take_listings(self, flow: str) -> list[FolderListing]:
        """How the folders of a flow's reads were listed by its last start; each listing is given once."""
        with self._lock:
            return list(self._listings.pop(flow, {}).values())

    def evolve(self, flow: str, checkpoint: FlowCheckpoint, wider: StructType) -> list[str]:
        """Add the fields of new files to the schemas of a flow's reads; returns the changes, as sentences.

        ``wider``: columns whose type was too narrow for a record, with the type that it needs.
        """
        changes = []
        for read in self.reads_of(flow):
            if not read.options.mode.evolves:
                continue
            with self._lock:
                current = self._schema(read, keep=True)
                files = unseen(listed(read.path, read.options), checkpoint.live_folder())
                seen = inferred_schema(self._session, files, read.options)
                names = {f.name.lower() for f in current.fields if _is_partition(f)}
                seen = StructType([f for f in seen.fields if f.name.lower() not in names])
                widen = read.options.mode is EvolutionMode.WIDEN
                schema = evolved(current, seen, widen=widen)
                if widen:
                    narrow = StructType([f for f in wider.fields if f.name in current.names])
                    schema = evolved(schema, narrow, widen=True)
                if schema == current:
                    continue
                reason = _difference(current, schema)
                version = read.log.append(schema, reason)
                changes.append(f"{read.path}: {reason} (schema {version} in {read.log.location})")
        return changes

    def _note_listing(self, flow: str, read: CloudRead, files: int | None, seconds: float) -> None:
        if files is not None:
            listing = FolderListing(read.path, files, round(seconds * 1000), read.options.backfill_interval)
            with self._lock:
                self._listings.setdefault(flow, {})[read.key] = listing

    # -- the parts of a read -----------------------------------------------------------------------------------

    def _read(
        self, path: str, options: CloudFilesOptions, schema: StructType | None, flow: ReadingFlow
    ) -> CloudRead:
        there = check_cloud_address(self._session, path)
        if not there and last_committed_batch(flow.checkpoint.live_folder()) is None:
            raise nothing_at(path)  # once files were read there, it may be empty
        digest = hashlib.sha256(f"{options.format}\0{path}".encode()).hexdigest()[:8]
        key = re.sub(r"[^A-Za-z0-9_-]+", "_", Path(path).name)[:40] + "-" + digest
        location = schema_location(self._state_folder, flow.owner, key)
        if options.schema_location is not None:
            location = _place(options.schema_location)
        if is_below(location, _place(path)):
            raise InvalidSourceOption(
                f"The schema location {location} lies in the folder that is read.",
                remedy="Put cloudFiles.schemaLocation elsewhere, or leave it out: the pipeline keeps it then.",
            )
        return CloudRead(path, options, schema, SchemaLog(location), key)

    def _schema(self, read: CloudRead, *, keep: bool) -> StructType:
        """The columns in force: given, kept, or inferred now (and written down only where ``keep``)."""
        if read.options.fixed and read.user_schema is None:
            return self._fixed(read)
        if read.user_schema is not None:
            return self._user_schema(read)
        latest = read.log.latest()
        if latest is None:
            return self._inferred(read, keep=keep)
        # Hints shape the inferred schema; later they only add columns: a column's type never changes by itself.
        return evolved(latest[1], apply_hints(StructType(), read.options.hints))

    def _inferred(self, read: CloudRead, *, keep: bool) -> StructType:
        location = read.log.location
        schema = self._schemas.get(location)
        if schema is None or location not in self._inferred_from:
            files = listed(read.path, read.options)
            data = inferred_schema(self._session, files, read.options)
            schema = apply_hints(
                _with_partitions(data, [f.path for f in files], read.options), read.options.hints
            )
            self._schemas[location] = schema
            if data.fields:
                self._inferred_from[location] = len(files)
        if keep and location in self._inferred_from:
            read.log.append(schema, f"inferred from {self._inferred_from[location]} files")
        return schema

    def _user_schema(self, read: CloudRead) -> StructType:
        assert read.user_schema is not None
        partition_names = read.options.partition_columns
        if partition_names is None:
            named_in_paths = path_partitions(
                [f.path for f in _listed_or_none(read)], None, infer_types=False
            ).names
            partition_names = tuple(name for name in named_in_paths if name in read.user_schema.names)
        marked = [_as_partition(f) if f.name in partition_names else f for f in read.user_schema.fields]
        missing = [name for name in partition_names if name not in read.user_schema.names]
        if missing:
            raise InvalidSourceOption(
                f"The partition columns {', '.join(missing)} are not in the schema.",
                remedy="Add them to .schema(...), or take them out of cloudFiles.partitionColumns.",
            )
        rescued = read.options.rescued
        return StructType([f for f in marked if f.name != rescued])

    def _fixed(self, read: CloudRead) -> StructType:
        data: Any = _FIXED.get(read.options.format)
        if read.options.variant:
            data = _variant_columns(read.options)
        return _with_partitions(
            plain_schema(data, None) or StructType(),
            [f.path for f in _listed_or_none(read)],
            read.options,
        )

    def _frame(self, read: FileRead) -> DataFrame:
        if read.options.fixed or not read.checks_fields:
            return native_frame(self._session, read)
        if read.options.format == "json":
            return json_frame(self._session, read)
        if read.options.format == "csv":
            return csv_frame(self._session, read)
        return columnar_frame(self._session, read)

    def _tell(self, options: CloudFilesOptions, flow: ReadingFlow) -> None:
        for note in options.notes:
            line = f"note: {flow.owner}: {note}"
            if line not in self._noted:
                self._noted.add(line)
                _LOG.warning("%s", line, extra={"flow": flow.owner})


def _variant_columns(options: CloudFilesOptions) -> StructType:
    """Each record whole; and where a column for it is named, the text of what is no JSON."""
    schema = StructType([StructField(options.variant, VariantType())])
    if corrupt := options.native_option("columnNameOfCorruptRecord"):
        schema = schema.add(StructField(corrupt, StringType()))
    return schema


def _listed_or_none(read: CloudRead) -> list[Any]:
    try:
        return list(listed(read.path, read.options))
    except SourceUnreachable:
        return []


def _with_partitions(data: StructType, paths: list[str], options: CloudFilesOptions) -> StructType:
    partitions = path_partitions(paths, options.partition_columns, infer_types=options.infer_types)
    names = {name.lower() for name in partitions.names}
    fields = [f for f in data.fields if f.name.lower() not in names]
    return StructType([*fields, *(_as_partition(f) for f in partitions.fields)])


def _as_partition(field: StructField) -> StructField:
    return StructField(field.name, field.dataType, True, {_PARTITION: True})


def _is_partition(field: StructField) -> bool:
    return bool((field.metadata or {}).get(_PARTITION))


def _difference(before: StructType, after: StructType) -> str:
    old = {field.name: field.dataType for field in before.fields}
    added = [f.name for f in after.fields if f.name not in old]
    changed = [f.name for f in after.fields if f.name in old and old[f.name] != f.dataType]
    parts = [f"new: {', '.join(added)}"] if added else []
    parts += [f"changed: {', '.join(changed)}"] if changed else []
    return "; ".join(parts)


def _place(path: str) -> Place:
    if is_s3(path):
        return place_of(path)
    if "://" in path and not path.startswith("file://"):
        raise InvalidSourceOption(
            f"A schema location can't lie in {path}.",
            remedy="Name a folder, or s3://bucket/folder; or leave it out: the pipeline keeps the schema then.",
        )
    url = urlparse(path)
    return Path(unquote(url.path) if url.scheme == "file" else path)
