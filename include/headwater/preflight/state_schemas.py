"""Paths of a state's schemas: Spark writes absolute paths into the state's metadata, and fails where the folder was moved."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from headwater.checkpoints.conditions import StateLost
from headwater.checkpoints.log_entries import write_entry
from headwater.preflight.damage import Damage, Repair
from headwater.preflight.flow_start import FlowStart
from headwater.storage.place import Place

# Of transformWithState: file:/<epoch>/state/<operator>/_stateSchema/<store>/<batch>_<id>
_SCHEMA = re.compile(r'"([^"]*?)(/state/\d+/_stateSchema/[^"]+)"')


def schemas_lie_elsewhere(start: FlowStart) -> Iterator[Damage]:
    """The checkpoint was renamed, copied or restored, and its metadata still names the schemas by their old folder."""
    moved = [file for file in _metadata(start.folder) if _corrected(file, start.folder) is not None]
    if not moved:
        return

    def mend() -> str:
        for file in moved:
            text = _corrected(file, start.folder)
            if text is not None:
                write_entry(file, text)
        return "the paths of the state's schemas were corrected: they named the folder that the checkpoint was in before"

    yield Damage(
        StateLost(
            f"The state of {start.flow!r} names its schemas by another folder than its own: the checkpoint was moved or copied.",
            where=moved[0],
            remedy="The next start repairs it: the schemas are there.",
        ),
        tuple(str(file) for file in moved[:10]),
        (Repair.MEND,),
        mend,
    )


def _metadata(folder: Place) -> list[Place]:
    return sorted(file for file in folder.glob("state/*/_metadata/v2/*") if file.name.isdigit())


def _corrected(file: Place, folder: Place) -> str | None:
    """The text with each schema named where it lies in this checkpoint; None where they are correct already, or where one is missing."""
    text = file.read_text(encoding="utf-8")
    schemas = list(_SCHEMA.finditer(text))
    if all(_same(match[1], folder) for match in schemas):
        return None
    if not all((folder / match[2].lstrip("/")).exists() for match in schemas):
        return None  # Spark says so
    # As Hadoop spells a path: only JSON's own escapes.
    own = json.dumps(f"file:{folder}" if isinstance(folder, Path) else str(folder), ensure_ascii=False)[1:-1]
    return _SCHEMA.sub(lambda match: f'"{own}{match[2]}"', text)


def _same(prefix: str, folder: Place) -> bool:
    named: str = json.loads(f'"{prefix}"')
    return (
        Path(re.sub(r"^file:/*", "/", named)) == folder if isinstance(folder, Path) else named == str(folder)
    )
