"""Whether the files of an epoch may be read at all; otherwise every other check would take them for damaged."""

from __future__ import annotations

from collections.abc import Iterator

from headwater.checkpoints.rights import first_denied, not_readable
from headwater.files.atomic_files import whose
from headwater.preflight.damage import Damage
from headwater.preflight.flow_start import FlowStart

# What Spark keeps in an epoch and a check reads.
_PARTS = ("metadata", "offsets", "commits", "sources", "state")


def checkpoint_is_denied(start: FlowStart) -> Iterator[Damage]:
    """Whether this user may read the live epoch; otherwise every other check would take it for damaged."""
    places = [start.checkpoint.folder, start.folder, *(start.folder / name for name in _PARTS)]
    for log in ("offsets", "commits"):
        folder = start.folder / log
        if first_denied(folder) is None and folder.is_dir():
            newest = sorted(
                (path for path in folder.iterdir() if path.name.isdigit()), key=lambda p: int(p.name)
            )
            places += newest[-2:]
    denied = next((place for place in places if first_denied(place) is not None), None)
    if denied is not None:
        yield Damage(not_readable(denied, f"where {start.flow!r} stands"), (whose(denied),))
