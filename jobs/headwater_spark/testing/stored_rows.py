"""A small table as a test sees it: read from its log and files, without a query of Spark where delta-rs can read them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType

from headwater.storage.delta_tables import delta_table
from headwater.storage.place import Place
from headwater_spark.testing.local_session import local_session

if TYPE_CHECKING:
    from deltalake import DeltaTable

# The version of readers that names features; below it only the first has none: the second maps columns.
_NAMED = 3
# Those that change nothing of what its Arrow reader gives. It takes mapped columns for missing ones, and a VARIANT for a struct.
_READ_ALIKE = {"timestampNtz"}


def stored_rows(table: Place, version: int | None = None) -> list[dict[str, Any]]:
    """The rows at a version, or the newest. Timestamps are in UTC, structs are dicts."""
    opened = delta_table(table, version)
    if _is_plain(opened):
        rows: list[dict[str, Any]] = opened.to_pyarrow_table().to_pylist()
    else:
        reader = local_session().read.format("delta").option("versionAsOf", opened.version())
        rows = reader.load(str(table)).toArrow().to_pylist()
    return rows


def stored_columns(table: Place) -> dict[str, str]:
    """The columns and their types, as Spark prints them."""
    schema = StructType.fromJson(json.loads(delta_table(table).schema().to_json()))
    return {field.name: field.dataType.simpleString() for field in schema.fields}


def _is_plain(table: DeltaTable) -> bool:
    protocol = table.protocol()
    named = protocol.min_reader_version == _NAMED and set(protocol.reader_features or ()) <= _READ_ALIKE
    return named or protocol.min_reader_version == 1
