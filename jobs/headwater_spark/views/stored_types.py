"""The types of a table's columns, from its log."""

from __future__ import annotations

import json

from pyspark.sql.types import StructType

from headwater.storage.delta_tables import delta_table
from headwater.storage.place import Place


def stored_types(table: Place) -> dict[str, str]:
    """Each column's type as Spark prints it, by its name in lower case."""
    schema = StructType.fromJson(json.loads(delta_table(table).schema().to_json()))
    return {field.name.lower(): field.dataType.simpleString() for field in schema.fields}
