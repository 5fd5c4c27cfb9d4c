"""Partition columns from the folders' names (``day=2026-01-31``), also below plain folders."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import PurePath
from urllib.parse import unquote

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, IntegerType, LongType, StringType, StructField, StructType

_NULL = "__HIVE_DEFAULT_PARTITION__"


def path_partitions(paths: Iterable[str], columns: Sequence[str] | None, *, infer_types: bool) -> StructType:
    """The partition columns of files at ``paths`` (``columns``: their names, else those of all ``key=value`` folders)."""
    values: dict[str, set[str]] = {name: set() for name in columns or ()}
    for path in paths:
        for part in PurePath(path).parts[:-1]:
            key, sign, value = part.partition("=")
            if sign and key and (columns is None or key in values):
                values.setdefault(key, set()).add(unquote(value))
    kinds = {
        name: _type(folder_values) if infer_types else StringType() for name, folder_values in values.items()
    }
    return StructType([StructField(name, kind) for name, kind in kinds.items()])


def partition_value(field: StructField, path: Column) -> Column:
    """A partition column's value, taken from a file's path as ``_metadata`` shows it."""
    raw = F.regexp_extract(path, f"/{re.escape(field.name)}=([^/]*)/", 1)
    # Escaped twice: as a folder's name, and as a URI. A plus sign is one.
    for _ in range(2):
        raw = F.url_decode(F.replace(raw, F.lit("+"), F.lit("%2B")))
    raw = F.when((raw != "") & (raw != _NULL), raw)
    return raw.try_cast(field.dataType).alias(field.name)


def _type(values: Iterable[str]) -> DataType:
    present = [value for value in values if value not in ("", _NULL)]
    if present and all(re.fullmatch(r"-?\d{1,18}", value) for value in present):
        return IntegerType() if all(abs(int(value)) < 2**31 for value in present) else LongType()
    if present and all(_is_date(value) for value in present):
        return DateType()
    return StringType()


def _is_date(value: str) -> bool:
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return len(value) == 10
