"""Which updates in a change file touched given columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from headwater.storage.delta_tables import delta_table
from headwater.storage.place import Place
from headwater.storage.walking import readable

_PHYSICAL = "delta.columnMapping.physicalName"


def updates_that_change(table: Place, file: Place, types: Sequence[str], columns: Sequence[str]) -> int:
    """How many updates of a change file gave one of ``columns`` another value.

    Writers put the row before the update and the row after it side by side. Where a file is written otherwise, or does
    not have the columns, nothing is known, and every update counts: a reader may be woken once too often, never
    once too little.

    Args:
        table: the table's folder.
        file: a change file of it.
        types: ``_change_type`` of each row of the file.
        columns: names of top-level columns.

    """
    updates = [index for index, kind in enumerate(types) if kind.startswith("update_")]
    everyone = list(types).count("update_postimage")
    kinds = [types[index] for index in updates]
    paired = kinds == ["update_preimage", "update_postimage"] * everyone
    if not paired or any(
        after - before != 1 for before, after in zip(updates[::2], updates[1::2], strict=True)
    ):
        return everyone
    values = _values(file, [_physical_names(table).get(name, name) for name in columns])
    if values is None:
        return everyone
    return sum(
        any(column[before] != column[after] for column in values)
        for before, after in zip(updates[::2], updates[1::2], strict=True)
    )


def _values(file: Place, columns: Sequence[str]) -> list[list[Any]] | None:
    from pyarrow import parquet

    opened = parquet.ParquetFile(readable(file))
    if not set(columns) <= set(opened.schema_arrow.names):
        return None
    read = opened.read(columns=list(columns))
    return [read[name].to_pylist() for name in columns]


def _physical_names(table: Place) -> dict[str, str]:
    fields = json.loads(delta_table(table).schema().to_json())["fields"]
    return {field["name"]: field.get("metadata", {}).get(_PHYSICAL, field["name"]) for field in fields}
