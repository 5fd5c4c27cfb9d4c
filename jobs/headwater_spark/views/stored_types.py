"""What a table's log says of its columns and properties."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql.types import StructType

from headwater.storage.delta_tables import delta_table
from headwater.storage.place import Place


@dataclass(frozen=True)
class StoredTable:
    """A table as its log describes it. ``types``: of its columns, as Spark prints them, in their order."""

    types: Mapping[str, str]
    has_change_feed: bool


def stored_table(table: Place) -> StoredTable:
    """A table's columns and properties."""
    opened = delta_table(table)
    schema = StructType.fromJson(json.loads(opened.schema().to_json()))
    feed = opened.metadata().configuration.get("delta.enableChangeDataFeed", "false")
    return StoredTable(
        {field.name: field.dataType.simpleString() for field in schema.fields}, feed.lower() == "true"
    )


def stored_schema_of(table: Place) -> StructType:
    """A table's columns."""
    return StructType.fromJson(json.loads(delta_table(table).schema().to_json()))


def stored_types(table: Place) -> dict[str, str]:
    """Each column's type as Spark prints it, by its name in lower case."""
    return {name.lower(): kind for name, kind in stored_table(table).types.items()}
