"""An id belongs to one pipeline: two folders with one id would share checkpoints, lease, event log and page.

Beside each other, two such folders are refused: a copied template with the name left in. Elsewhere they may be two checkouts of
one pipeline, or a deployment that comes in a new folder each time, so nothing is refused; storage remembers from which folders
the pipeline was written, and says when two of them take turns.

Decision 0133.
"""

from __future__ import annotations

import json
import logging
import os
import re
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from headwater.definitions.names import is_folder_name
from headwater.definitions.pipeline_spec import PipelineSpec
from headwater.errors import HeadwaterError
from headwater.files.atomic_files import write_atomically
from headwater.graph.conditions import PipelineIdTaken
from headwater.graph.spec_file import SPEC_FILES, read_spec
from headwater.storage.place import Place

_log = logging.getLogger(__name__)
# After this time a folder was left for good; a return to it is a rollback of a deployment.
_TURN_DAYS = 7
_KEPT = 10


def refuse_shared_id(
    folder: Path,
    pipeline_id: str,
    environment: Mapping[str, str] = os.environ,
    *,
    own_storage: bool = False,
    written: Collection[Path] | None = None,
) -> None:
    """Raise PipelineIdTaken where another folder beside this one has a pipeline of the same id.

    Args:
        folder: of the pipeline.
        own_storage: the spec's own ``storage`` decides where the state lies, so folders that say another one share nothing.
        written: where the caller chose the storage for this call alone, the folders that have written this pipeline's state
            there: others may have been given storages of their own.
    """
    for other, spec in _beside(folder, pipeline_id, environment):
        if spec.pipeline_id != pipeline_id or (
            own_storage and spec.storage and not Path(spec.storage).is_absolute()
        ):
            continue
        if written is not None and other.resolve() not in written:
            continue
        raise PipelineIdTaken(
            f"The pipelines in {folder.name!r} and {other.name!r} have the same id, {pipeline_id!r}: they would share "
            "checkpoints, lease and event log, and each would take the other's position for its own.",
            where=other,
            remedy="Give one of them another `name` (or `id`) in its pipeline.yml; or, if one is a copy to keep, move it out "
            "of the folder of pipelines, or give it a name with a dot (orders.old).",
        )


def _beside(
    folder: Path, pipeline_id: str, environment: Mapping[str, str]
) -> Iterator[tuple[Path, PipelineSpec]]:
    """The pipelines beside a folder that may have this id, with their specs; broken ones have none."""
    parent = str(folder.parent)
    try:
        names = sorted(entry.name for entry in os.scandir(parent) if is_folder_name(entry.name))
    except OSError:
        return
    for name in names:
        if name == folder.name:
            continue
        for spec_name in SPEC_FILES:
            file = f"{parent}/{name}/{spec_name}"
            if may_have_id(file, pipeline_id) and Path(file).parent.resolve() != folder.resolve():
                try:
                    yield Path(file).parent, read_spec(Path(file), environment)
                except HeadwaterError:
                    continue  # it can't run, and says so itself


# Where DAGs are parsed, each of many pipelines looks at all others: specs are read again only where they changed.
_read: dict[str, tuple[tuple[int, int, int], bytes]] = {}


def may_have_id(file: str, pipeline_id: str) -> bool:
    """Whether the id stands in a file, or is put in from the environment; reading YAML of all pipelines takes long."""
    try:
        now = os.stat(file)  # noqa: PTH116 - for each of many pipelines, a Path would take longer than the question
        version = (now.st_ino, now.st_mtime_ns, now.st_size)
        cached = _read.get(file)
        if cached is None or cached[0] != version:
            cached = _read[file] = (version, Path(file).read_bytes())
    except OSError:
        return False
    content = cached[1]
    whole_name = rb"(?<![\w-])" + re.escape(pipeline_id.encode()) + rb"(?![\w-])"
    return b"${env:" in content or b"\\" in content or re.search(whole_name, content) is not None


@dataclass(frozen=True)
class Home:
    """A folder that a pipeline was written from. ``at``: when last, in seconds since 1970."""

    folder: str
    at: float


def homes_file(state_folder: Place) -> Place:
    """Where storage remembers the folders of a pipeline."""
    return state_folder / "system" / "folders.json"


def known_homes(state_folder: Place) -> list[Home]:
    """The folders that a pipeline was written from, the newest last; empty where that can't be known."""
    try:
        entries = json.loads(homes_file(state_folder).read_text(encoding="utf-8"))
        return [Home(str(entry["folder"]), float(entry["at"])) for entry in entries]
    except (OSError, ValueError, TypeError, KeyError):
        return []


def note_home(state_folder: Place, folder: Place, now: float | None = None) -> None:
    """Remember that a pipeline is written from a folder now, and warn where two of them take turns; under the lease."""
    moment = time.time() if now is None else now
    homes = known_homes(state_folder)
    if homes and homes[-1].folder == str(folder) and moment - homes[-1].at < 3600:
        return  # not at every step of an update
    others = homes[:-1] if homes and homes[-1].folder == str(folder) else homes
    newest_homes = [*others, Home(str(folder), moment)][-_KEPT:]
    text = json.dumps([{"folder": home.folder, "at": home.at} for home in newest_homes], indent=1)
    write_atomically(homes_file(state_folder), text + "\n")
    turns = taking_turns(newest_homes)
    if turns:
        _log.warning("%s", turns)


def taking_turns(homes: list[Home]) -> str | None:
    """What to say where the newest folder was left for another one and came back; None else."""
    if not homes:
        return None
    newest = homes[-1]
    between = [
        home
        for index, home in enumerate(homes[:-1])
        if home.folder != newest.folder
        and newest.at - home.at < _TURN_DAYS * 86400
        and any(before.folder == newest.folder for before in homes[:index])
    ]
    if not between:
        return None
    return (
        f"The pipeline is written from two folders in turn, {newest.folder} and {between[-1].folder}: if they are not two "
        "checkouts of one pipeline, give one of them another `name` (or `id`) in its pipeline.yml."
    )
