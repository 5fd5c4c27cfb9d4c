"""The schema location: each version of a source's schema as a numbered, readable file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql.types import StructType

from headwater.checkpoints.inferred_schemas import newest_schema, schema_file
from headwater.files.atomic_files import write_atomically
from headwater.storage.place import Place


@dataclass(frozen=True)
class SchemaLog:
    """The log at ``<location>/_schemas/``: files ``0``, ``1``, ...; the highest is in force."""

    location: Place

    def latest(self) -> tuple[int, StructType] | None:
        """The version in force and its columns, None where there is none yet; errors as of ``newest_schema``."""
        return newest_schema(self.location, StructType.fromJson)

    def append(self, schema: StructType, reason: str) -> int:
        """Write the next version and return its number. ``reason``: why it differs from the one before."""
        latest = self.latest()
        version = latest[0] + 1 if latest else 0
        data = {
            "version": version,
            "written_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "reason": reason,
            "columns": [f"{field.name}: {field.dataType.simpleString()}" for field in schema.fields],
            "schema": schema.jsonValue(),
        }
        write_atomically(schema_file(self.location, version), json.dumps(data, indent=1) + "\n")
        return version
