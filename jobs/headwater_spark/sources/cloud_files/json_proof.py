"""What is certain about JSON-lines files before Spark reads them, determined by a parser written in C++.

Spark's own parser silently leaves out what a schema has no column for, and turns what does not fit into NULL. Where a file is
proven to have neither, its rows need no second check. A proof exists only where the two parsers can't differ. Lines of one
shape need no parser (``json_shape``).
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import IntEnum
from pathlib import Path
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructType,
)

from headwater.metrics.file_listing import ListedFile
from headwater.storage.place import is_s3
from headwater_spark.sources.cloud_files.json_shape import has_one_shape

# The most bytes that are examined before the start; a longer queue is read the careful way.
_PROVEN_BYTES = 2_000_000_000
_BLOCK = 4 << 20
# Spark's parser refuses numbers of more than 1,000 characters. In a block, every 20th character is checked.
_STRIDE = 20
_DIGITS = bytes(ord("0") if chr(code) in "0123456789.+-eE" else code for code in range(256))
_LONG = b"0" * (500 // _STRIDE - 1)


class Proof(IntEnum):
    """What is certain about JSON-lines files: nothing, that they have no unknown keys, or that each value fits as well."""

    NOTHING = 0
    KEYS = 1
    VALUES = 2


def proven(files: Sequence[ListedFile], schema: StructType) -> Proof:
    """What is certain about JSON-lines files that are read as ``schema``: the weakest proof of any of them."""
    if sum(file.size for file in files) > _PROVEN_BYTES or any(is_s3(file.path) for file in files):
        return Proof.NOTHING  # what lies on a store would be fetched twice
    with ThreadPoolExecutor(2, thread_name_prefix="json-proof") as pool:
        return min(pool.map(lambda file: _proof(file.path, schema), files), default=Proof.VALUES)


def _proof(path: str, schema: StructType) -> Proof:
    import pyarrow as pa

    try:
        if Path(path).stat().st_size == 0:
            return Proof.VALUES
        with pa.input_stream(path, compression="detect") as stream:
            if has_one_shape(stream, schema):
                return Proof.VALUES
        with pa.input_stream(path, compression="detect") as stream:
            return _proof_of(_Lines(stream), schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError, UnicodeError, RecursionError):
        return Proof.NOTHING


def _proof_of(lines: _Lines, schema: StructType) -> Proof:
    from pyarrow import json

    rows, finite = 0, True
    with json.open_json(lines, json.ReadOptions(use_threads=False, block_size=_BLOCK)) as batches:
        # A later block with another key, or another type for one, is an error.
        arrow = batches.schema
        for batch in batches:
            rows += batch.num_rows
            finite = finite and all(_finite(column) for column in batch.columns)
    if rows > lines.count or not _has_only_keys_of(arrow, schema):
        return Proof.NOTHING  # of several records in a line Spark reads the first
    types = {field.name: field.dataType for field in schema.fields}
    fits = all(_fits(field.type, types[field.name]) for field in arrow)
    return Proof.VALUES if fits and finite and lines.hold_one_record_each(rows) else Proof.KEYS


class _Lines(io.RawIOBase):
    """JSON text that is checked while it is read: whether Arrow and Spark split it into the same records."""

    def __init__(self, stream: Any) -> None:
        super().__init__()
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._last = b"}\n"  # as if a record had ended before the first
        self._breaks = self._starts = 0
        self._odd = False
        self._ended = False

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        block = bytes(self._stream.read(size))
        self._ended = not block
        # Arrow takes any bytes for text, and Spark a lone carriage return for the end of a line.
        self._odd = self._odd or b"\0" in block or b"\r" in block or self._is_no_text(block)
        self._odd = self._odd or _LONG in block[::_STRIDE].translate(_DIGITS)
        self._breaks += block.count(b"\n")
        # Between a brace that ends a line and one that begins the next no record can go on: a comma would be there.
        self._starts += block.count(b"}\n{") + (self._last + block[:2]).count(b"}\n{")
        self._last = (self._last + block[-2:])[-2:]
        return block

    def _is_no_text(self, block: bytes) -> bool:
        try:
            self._decoder.decode(block, final=not block)
        except UnicodeDecodeError:
            return True
        return False

    @property
    def count(self) -> int:
        """The lines, blank ones too."""
        return self._breaks + (not self._last.endswith(b"\n"))

    def hold_one_record_each(self, rows: int) -> bool:
        """Whether ``rows`` records can only be one in each line."""
        return self._ended and not self._odd and rows == self._starts == self.count


def _finite(column: Any) -> bool:
    """Whether an Arrow column has no NaN or infinity at any level: the parsers spell and bound them differently."""
    import pyarrow as pa
    from pyarrow import compute

    if pa.types.is_floating(column.type):
        return bool(compute.all(compute.is_finite(column), min_count=0).as_py())
    if pa.types.is_struct(column.type):
        return all(_finite(part) for part in column.flatten())
    return _finite(column.flatten()) if pa.types.is_list(column.type) else True


def _fits(arrow: Any, kind: DataType) -> bool:
    """Whether Spark's parser takes each value of an Arrow type for ``kind``; False where it depends on the value."""
    import pyarrow as pa

    if pa.types.is_null(arrow) or isinstance(kind, StringType):
        return True
    if isinstance(kind, StructType) and pa.types.is_struct(arrow):
        types = {field.name: field.dataType for field in kind.fields}
        return all(_fits(field.type, types[field.name]) for field in arrow)
    if isinstance(kind, ArrayType) and pa.types.is_list(arrow):
        return _fits(arrow.value_type, kind.elementType)
    if isinstance(kind, LongType):
        return bool(pa.types.is_int64(arrow))
    if isinstance(kind, DoubleType):
        return bool(pa.types.is_int64(arrow) or pa.types.is_float64(arrow))
    return bool(isinstance(kind, BooleanType) and pa.types.is_boolean(arrow))


def _has_only_keys_of(arrow: Any, kind: DataType) -> bool:
    """Whether an Arrow schema or struct has no field that ``kind`` lacks, at any level."""
    import pyarrow as pa

    if isinstance(kind, StructType):
        if isinstance(arrow, pa.DataType) and not pa.types.is_struct(arrow):
            return True  # of another type: Spark's parser notices
        types = {field.name: field.dataType for field in kind.fields}
        return all(f.name in types and _has_only_keys_of(f.type, types[f.name]) for f in arrow)
    if isinstance(kind, ArrayType) and pa.types.is_list(arrow):
        return _has_only_keys_of(arrow.value_type, kind.elementType)
    if isinstance(kind, MapType) and pa.types.is_struct(arrow):
        return all(_has_only_keys_of(f.type, kind.valueType) for f in arrow)
    return True
