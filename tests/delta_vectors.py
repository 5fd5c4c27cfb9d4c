"""Deletion vectors, given to the files of tables that delta-rs wrote: it writes none itself."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headwater.delta_log import deletion_vectors
from headwater.delta_log.commits import commit_file

FEATURES = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["deletionVectors"],
    "writerFeatures": ["deletionVectors"],
}


def z85(data: bytes) -> str:
    """Bytes as Delta's log has them, filled up to a multiple of four."""
    digits = str.maketrans(deletion_vectors._B85, deletion_vectors._Z85)
    return base64.b85encode(data + b"\0" * (-len(data) % 4)).decode().translate(digits)


def inline(content: bytes, cardinality: int) -> dict[str, Any]:
    """A vector that is in the log itself."""
    return {
        "storageType": "i",
        "pathOrInlineDv": z85(content),
        "sizeInBytes": len(content),
        "cardinality": cardinality,
    }


def with_vector(table: Path, version: int, vector: dict[str, Any]) -> None:
    """Give the file that a version added a vector, and the table the feature."""

    def change(action: dict[str, Any]) -> None:
        if "add" in action:
            action["add"]["deletionVector"] = vector

    _edit(table, 0, _with_feature)
    _edit(table, version, change)


def enable_vectors(table: Path) -> None:
    """Let a table take new vectors."""

    def change(action: dict[str, Any]) -> None:
        if "metaData" in action:
            action["metaData"]["configuration"]["delta.enableDeletionVectors"] = "true"

    _edit(table, 0, _with_feature)
    _edit(table, 0, change)


def _with_feature(action: dict[str, Any]) -> None:
    if "protocol" in action:
        action["protocol"] = FEATURES


def _edit(table: Path, version: int, change: Callable[[dict[str, Any]], None]) -> None:
    file = commit_file(table, version)
    actions = [json.loads(line) for line in file.read_text().split("\n") if line]
    for action in actions:
        change(action)
    file.write_text("".join(f"{json.dumps(action)}\n" for action in actions))
