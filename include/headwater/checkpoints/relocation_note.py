"""The note beside a pipeline's checkpoints that the pipeline is on its way to other roots, or has left these.

Decision 0192.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from headwater.checkpoints.conditions import PipelineRelocated
from headwater.checkpoints.guarded_files import Guarded, GuardedKind, end_guarded, write_guarded
from headwater.storage.place import Place, is_url


@dataclass(frozen=True)
class Relocation:
    """From which roots to which ones. ``left``: the note is that of the old place; ``command``: what ends it, for messages.

    ``copied``: the folders at the new place that a try has begun to fill; none in the note of the old place.
    """

    relocation_id: str
    storage: str
    warehouse: str
    to_storage: str
    to_warehouse: str
    command: str
    left: bool = False
    copied: tuple[str, ...] = ()

    def is_the_same(self, other: Relocation) -> bool:
        """Whether both lead from the same roots to the same ones."""
        own = {name: getattr(self, name) for name in ("relocation_id", "command", "left", "copied")}
        return self == replace(other, **own)

    def text(self) -> str:
        """The text of the note; without ``copied``, as versions before it wrote it, where there is nothing to say."""
        values = asdict(self)
        copied = {"copied": values.pop("copied")} if self.copied else {}
        return json.dumps({**values, **copied}, indent=1) + "\n"


def note_file(state_folder: Place) -> Place:
    """The note; where a pipeline stays, there is no file, or one that says that it has arrived."""
    return state_folder / "relocation.json"


_NOTES = GuardedKind(
    lambda data: Relocation(**{**data, "copied": tuple(data.get("copied", ()))}),
    {"what": "The note of a relocation", "unknown": "whether the pipeline has other roots now"},
)


def read_note(state_folder: Place) -> Guarded[Relocation]:
    """The note for who writes it; raises FlowStateDamaged where it can't be read."""
    return _NOTES.seen(note_file(state_folder))


def relocation_of(state_folder: Place) -> Relocation | None:
    """What the note says, None where there is none; errors as of ``read_note``."""
    return _NOTES.record(note_file(state_folder))


def write_note(seen: Guarded[Relocation], relocation: Relocation) -> None:
    """Write the note, durably, where it does not say so; raises LeaseLost where another process has been there."""
    if seen.record != relocation:
        write_guarded(seen, relocation.text())


def end_note(state_folder: Place, relocation: Relocation) -> None:
    """Open the new place; where its note is that of another relocation, another process has."""
    seen = read_note(state_folder)
    if seen.record == relocation:
        end_guarded(seen, relocation.relocation_id)


def removal_of_copy(note: Relocation, state_folder: Place) -> str:
    """How to free a place at which a relocation was given up, in words: copies of tables first, the note last."""
    return removal_of(note.copied or (str(state_folder),))


def removal_of(folders: Sequence[str]) -> str:
    """How to remove copies, in this order, in words that begin a sentence's second part."""
    commands = [
        f"aws s3 rm --recursive {shlex.quote(folder + '/')}"
        if is_url(folder)
        else f"rm -rf {shlex.quote(folder)}"
        for folder in folders
    ]
    if any(is_url(folder) and not folder.startswith("s3:") for folder in folders):
        return f"remove these folders in this order, unless another pipeline fills a table there: {', '.join(folders)}"
    return f"free the place, unless another pipeline fills a table there: {' && '.join(commands)}"


def refuse_relocated(state_folder: Place) -> None:
    """Raise PipelineRelocated where the pipeline has left, or has not arrived: two places must never be written in turns."""
    note = relocation_of(state_folder)
    if note is None:
        return
    if note.left:
        raise PipelineRelocated(
            f"This pipeline has other roots now: its storage is {note.to_storage}, its warehouse {note.to_warehouse}.",
            where=note_file(state_folder),
            remedy="Run it with these (HEADWATER_STORAGE and HEADWATER_WAREHOUSE, or `storage` in pipeline.yml). What lies here is "
            "the copy of before, and may be removed.",
        )
    raise PipelineRelocated(
        f"This pipeline is half-way here from {note.storage}: the process that copied it has died, or is at work.",
        where=note_file(state_folder),
        remedy=f"End it: {note.command} --yes. Nothing is lost: the old place has everything. If that is refused because the pipeline "
        f"went to another place instead, this copy is left over: {removal_of_copy(note, state_folder)}",
    )
