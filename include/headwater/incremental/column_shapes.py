"""What of a Delta table's columns decides about the rows that are read of its files.

Decision 0238.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_MODE = "delta.columnMapping.mode"
_PHYSICAL = "delta.columnMapping.physicalName"
_IDS = ("delta.columnMapping.id", "delta.columnMapping.nested.ids")
# Of a column's metadata, what says where its values lie and how they compare: the schema calls all texts `string`.
_MAPPED = "delta.columnMapping"
_DECIDING = (_MAPPED, "__COLLATIONS", "__CHAR_VARCHAR_TYPE_STRING")


def mapping_of(configuration: Mapping[str, Any]) -> str:
    """How a table finds its columns in files, by its properties: ``none`` (by their names), ``name`` (by names of their own), ``id``."""
    return str(configuration.get(_MODE) or "none")


def columns_by_name(schema: str, mapping: str) -> dict[str, str]:
    """Each column by its name in lower case: type, collations, and where its values lie in files.

    Args:
        schema: as a table's metadata has it.
        mapping: how columns are found in files.
    """
    shown = {}
    for field in json.loads(schema)["fields"]:
        # Spelled otherwise it is another column to whoever reads all of them. Whether it may be NULL changes no value.
        described = {key: value for key, value in _described(field, mapping).items() if key != "nullable"}
        shown[field["name"].lower()] = json.dumps(described, sort_keys=True)
    return shown


def types_by_name(schema: str) -> dict[str, str]:
    """Each column's type by its name in lower case, with its collations: what a query knows of it, wherever its values lie."""
    return {
        name: json.dumps(_unmapped(json.loads(described)))
        for name, described in columns_by_name(schema, "none").items()
    }


def _unmapped(part: Any) -> Any:
    if isinstance(part, list):
        return [_unmapped(one) for one in part]
    if not isinstance(part, dict):
        return part
    return {key: _unmapped(value) for key, value in part.items() if not key.startswith(_MAPPED)}


def _described(part: Any, mapping: str) -> Any:
    """A type, or a field, also inside of others, without what decides nothing."""
    if isinstance(part, list):
        return [_described(one, mapping) for one in part]
    if not isinstance(part, dict):
        return part
    shown = {key: _described(value, mapping) for key, value in part.items() if key != "metadata"}
    metadata = part.get("metadata") or {}
    deciding = {key: value for key, value in metadata.items() if key.startswith(_DECIDING)}
    if mapping != "id":
        as_ever = {_PHYSICAL: part.get("name")}.items()
        deciding = dict(one for one in deciding.items() if one[0] not in _IDS and one not in as_ever)
    return {**shown, "metadata": deciding}
