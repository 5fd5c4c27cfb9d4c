"""The schema location: each version of a source's schema as a numbered, readable file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql.types import StructType

from headwater.checkpoints.rights import not_readable
from headwater.errors import CheckpointUnreadable
from headwater.files.atomic_files import write_atomically
from headwater.storage.place import Place


@dataclass(frozen=True)
class SchemaLog:
    """The log at ``<location>/_schemas/``: files ``0``, ``1``, ...; the highest is in force."""

    location: Place

    def latest(self) -> tuple[int, StructType] | None:
        """The version in force and its columns, None where there is none yet."""
        folder = self.location / "_schemas"
        numbers = [int(p.name) for p in folder.iterdir() if p.name.isdigit()] if folder.is_dir() else []
        if not numbers:
            return None
        file = folder / str(max(numbers))
        try:
            return max(numbers), StructType.fromJson(json.loads(file.read_text(encoding="utf-8"))["schema"])
        except OSError as error:
            raise not_readable(file, "which columns the source has", error) from None
        except (ValueError, KeyError, TypeError) as error:
            raise CheckpointUnreadable(
                f"The schema can't be read: {error}.",
                where=file,
                remedy="Restore it from a backup, or remove it: "
                + (
                    "the version before it is then in force."
                    if len(numbers) > 1
                    else "the columns are then inferred from all files that are there now, and a new one of them becomes a column."
                ),
            ) from None

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
        write_atomically(self.location / "_schemas" / str(version), json.dumps(data, indent=1) + "\n")
        return version
