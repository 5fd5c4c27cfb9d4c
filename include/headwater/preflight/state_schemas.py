"""A state's schemas: Spark fails where one is cut off, and writes their absolute paths into the state's metadata, and fails where the folder was moved."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from headwater.checkpoints.conditions import StateDamaged, StateLost
from headwater.checkpoints.log_entries import put_aside, write_entry
from headwater.preflight.damage import Damage, Repair
from headwater.preflight.flow_start import FlowStart
from headwater.preflight.sink_checks import last_remedy
from headwater.preflight.state_checks import state_stores
from headwater.storage.listing import look_into
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


def schema_is_damaged(start: FlowStart) -> Iterator[Damage]:
    """Spark compares the state's columns with those of the query at each start, and says nothing of a file that it can't read to its end."""
    if not start.state.state_settings or not start.committed:
        return
    look_into(start.folder / "state")
    files = [store.folder / "_metadata" / "schema" for store in state_stores(start.folder)]
    damaged = next((file for file in files if file.is_file() and not _is_whole(file.read_bytes())), None)
    if damaged is None:
        return

    def mend() -> str:
        put_aside(damaged, start.folder)
        return "the damaged schema of the state was put aside: the next start writes it again, from the query as it is now"

    yield Damage(
        StateDamaged(
            f"The file that says which columns the state of {start.flow!r} has is cut off.",
            where=damaged,
            remedy=start.restoring(
                f"where the query is the one of the last run, have the next start write it again: {start.command('mend')}; "
                f"or {last_remedy(start)}"
            ),
        ),
        (f"{damaged.name}: it ends too early",),
        (Repair.MEND, Repair.RESTORE, Repair.FULL_REFRESH),
        mend,
        unasked=False,
    )


def _is_whole(data: bytes) -> bool:
    """Whether a schema is there to its end. Forms that are not known here are left to Spark."""
    texts = _Texts(data)
    try:
        version = texts.text()
        if version == "v1":
            texts.text(), texts.text()
        elif version == "v2":
            for _ in ("keys", "values"):
                for _ in range(texts.number()):
                    texts.text()
    except (IndexError, UnicodeDecodeError):
        return False
    return True


class _Texts:
    """Numbers and texts as Java's ``DataOutputStream`` writes them; raises IndexError where they end too early."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def number(self, size: int = 4) -> int:
        """The next number."""
        return int.from_bytes(self._next(size))

    def text(self) -> str:
        """The next text."""
        return self._next(self.number(2)).decode("utf-8", errors="surrogateescape")

    def _next(self, size: int) -> bytes:
        part = self._data[self._at : self._at + size]
        if len(part) < size:
            raise IndexError(size)
        self._at += size
        return part


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
