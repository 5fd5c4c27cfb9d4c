"""A Delta table's columns as a Hive metastore lists them. Readers of Delta take the types from the table's log; these are for people."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Hive's tables take no longer ones.
_LONGEST_COMMENT = 255
_SIMPLE = {
    **dict.fromkeys(("string", "boolean", "binary", "date", "float", "double", "timestamp", "void")),
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    # Hive has no type for a time without a zone, nor for a variant, which is stored as these two.
    "timestamp_ntz": "timestamp",
    "variant": "struct<metadata:binary,value:binary>",
}
_DECIMAL = re.compile(r"decimal\(\d+,\s*-?\d+\)")
_STRANGE = re.compile(r"[^A-Za-z0-9_]|^(?=\d|$)")


@dataclass(frozen=True)
class Column:
    """A column as the metastore has it; ``type`` in Hive's words."""

    name: str
    type: str
    comment: str = ""


def hive_columns(schema: Mapping[str, Any]) -> tuple[Column, ...]:
    """The columns of a schema as Delta's log has it (the JSON form of Spark's types)."""
    return tuple(
        Column(
            field["name"].lower(), hive_type(field["type"]), str((field.get("metadata") or {}).get("comment") or "")[:_LONGEST_COMMENT]
        )
        for field in schema["fields"]
    )  # fmt: skip


def hive_type(kind: Any) -> str:
    """A type in Hive's words; ``binary`` for one that is not known here, since its bytes are stored somehow."""
    if isinstance(kind, str):
        if _DECIMAL.fullmatch(kind):
            return kind.replace(" ", "")
        return (_SIMPLE[kind] or kind) if kind in _SIMPLE else "binary"
    if kind["type"] == "array":
        return f"array<{hive_type(kind['elementType'])}>"
    if kind["type"] == "map":
        return f"map<{hive_type(kind['keyType'])},{hive_type(kind['valueType'])}>"
    if kind["type"] == "struct":
        return f"struct<{','.join(_field(field) for field in kind['fields'])}>"
    return "binary"


def _field(field: Mapping[str, Any]) -> str:
    # Spark can't parse other signs without quotes, and Hive can't parse quotes: neither could read, or alter, the table.
    return f"{_STRANGE.sub('_', field['name'])}:{hive_type(field['type'])}"
