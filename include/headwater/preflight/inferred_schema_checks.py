"""The columns that were inferred from files: a source can't be read while the file that says them is damaged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headwater.checkpoints.inferred_schemas import newest_schema
from headwater.errors import CheckpointUnreadable
from headwater.preflight.damage import Damage
from headwater.preflight.flow_start import FlowStart


def inferred_schema_is_damaged(start: FlowStart) -> Iterator[Damage]:
    """In a deep check alone: a start reads them itself, before it comes to its checks."""
    for location in start.schemas() if start.deep else ():
        try:
            newest_schema(location, _columns)
        except CheckpointUnreadable as error:
            yield Damage(error, (f"inferred for the read {location.name}",))


def _columns(schema: Any) -> list[tuple[str, Any]]:
    """Names and types; raises ValueError, KeyError or TypeError where it is no schema."""
    return [(str(field["name"]), field["type"]) for field in schema["fields"]]
