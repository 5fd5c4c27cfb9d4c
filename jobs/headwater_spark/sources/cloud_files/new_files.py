"""The files that a flow has not ingested, and what is examined in them before the stream starts.

Files are examined by readers written in C++ or by their footers and headers, never row by row in Python.

Decision 0022.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

from headwater.checkpoints.offsets import (
    BatchOffsets,
    committed_offsets,
    files_seen,
    last_planned_batch,
    read_offsets,
)
from headwater.metrics.file_listing import ListedFile, list_files
from headwater.storage.object_files import opened
from headwater.storage.place import Place, is_s3, place_of
from headwater.storage.place import spark_uri as file_uri
from headwater_spark.sources.cloud_files.options import UTF_8, CloudFilesOptions

# By the ends of names, as Arrow and Spark have them.
_COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
__all__ = [
    "csv_columns", "file_uri", "footer_key", "is_there", "listed", "planned_file_missing", "unseen",
]  # fmt: skip


def listed(path: str, options: CloudFilesOptions) -> list[ListedFile]:
    """The files that a read of ``path`` would list; raises SourceUnreachable."""
    return list_files(path, {**options.native, "recursiveFileLookup": "true"})


def unseen(files: Iterable[ListedFile], checkpoint: Place) -> list[ListedFile]:
    """Those that are in no committed batch of a flow's live checkpoint."""
    offsets = committed_offsets(checkpoint)
    if offsets is None:
        return list(files)
    ingested_paths: set[str] = set()
    for index in range(len(offsets.sources)):
        offset = _log_offset(offsets, index)
        if offset is not None:
            ingested_paths |= {f.path for f in files_seen(checkpoint, index, up_to=offset)}
    return [file for file in files if file.path not in ingested_paths]


def planned_file_missing(checkpoint: Place) -> bool:
    """Whether a file of the batch that a flow has planned but not committed no longer exists."""
    planned = last_planned_batch(checkpoint)
    if planned is None:
        return False
    offsets, committed = read_offsets(checkpoint, planned), committed_offsets(checkpoint)
    for index in range(len(offsets.sources)):
        if _log_offset(offsets, index) is not None:
            before = _log_offset(committed, index)
            ahead = (f for f in files_seen(checkpoint, index) if before is None or f.batch_id > before)
            if any(not is_there(file.path) for file in ahead):
                return True
    return False


def _log_offset(offsets: BatchOffsets | None, index: int) -> int | None:
    offset = offsets.source(index) if offsets is not None else None
    return int(offset["logOffset"]) if isinstance(offset, dict) and "logOffset" in offset else None


def is_there(path: str) -> bool:
    """Whether a file, or an object of this address, exists now."""
    place = place_of(path)
    return place.exists() if isinstance(place, Path) else place.is_file()


def csv_columns(path: str, options: CloudFilesOptions) -> tuple[str, ...]:
    """The columns of a CSV file: those of its header, else ``_c0``, ``_c1``, ..."""
    with _uncompressed(path) as raw:
        # A mark of the order of bytes is no part of the first name.
        encoding = "utf-8-sig" if options.encoding == UTF_8 else options.encoding
        text = io.TextIOWrapper(raw, encoding=encoding, errors="replace", newline="")
        separator = options.native_option("sep", options.native_option("delimiter", ","))
        reader = csv.reader(
            text,
            delimiter=separator.replace("\\t", "\t"),
            quotechar=options.native_option("quote", '"') or None,
        )
        comment = options.native_option("comment", "")
        first = next((row for row in reader if row and not (comment and row[0].startswith(comment))), [])
    if options.header:
        return tuple(name.strip() for name in first)
    return tuple(f"_c{index}" for index in range(len(first)))


def footer_key(path: str, source_format: str) -> bytes:
    """A key that is equal for files of one schema, read from a footer or header alone."""
    if source_format == "parquet":
        from pyarrow import parquet

        with _stream(path) as stream:
            return bytes(parquet.read_schema(stream).remove_metadata().serialize())
    if source_format == "orc":
        from pyarrow import orc

        with _stream(path) as stream:
            return bytes(orc.ORCFile(stream).schema.remove_metadata().serialize())
    with _stream(path) as stream:
        return _avro_schema(stream.read(4 << 20))


def _stream(path: str) -> IO[bytes]:
    place = place_of(path)
    return place.open("rb") if isinstance(place, Path) else opened(place)


def _uncompressed(path: str) -> Any:
    """The content of a file as a stream; what its name says is compressed is not, here."""
    import pyarrow as pa

    if not is_s3(path):
        return pa.input_stream(path, compression="detect")
    plain = pa.PythonFile(_stream(path), mode="r")
    compression = next((name for end, name in _COMPRESSIONS.items() if path.endswith(end)), None)
    return plain if compression is None else pa.CompressedInputStream(plain, compression)


def _avro_schema(head: bytes) -> bytes:
    """The schema's text in the header of an Avro file: a key, a length of variable size, the text."""
    start = head.find(b"avro.schema")
    if start < 0:
        return head
    position, length, shift = start + len(b"avro.schema"), 0, 0
    while True:
        byte = head[position]
        position += 1
        length |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            break
    return head[position : position + (length >> 1)]
