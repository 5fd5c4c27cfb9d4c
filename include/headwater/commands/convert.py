"""``convert``: writes the ``pipeline.yml`` for settings of Lakeflow, with what became of each setting as comments.

Decision 0161.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from headwater.contract.printing import print_json
from headwater.errors import UsageError
from headwater.files.atomic_files import write_atomically
from headwater.graph.bundle_sources import BundleSources, bundle_sources
from headwater.graph.lakeflow_spec import SettingNote
from headwater.graph.spec_file import SPEC_FILES, check_as_written, read_source

_ORDER = (
    "name",
    "id",
    "catalog",
    "schema",
    "database",
    "target",
    "storage",
    "libraries",
    "configuration",
    "parameters",
)


def convert(
    file: str, output: str | None, pipeline: str | None, *, as_json: bool, target: str | None = None
) -> int:
    """Write ``pipeline.yml`` into a folder that has none, and say what became of each setting; copy a bundle's sources there.

    Args:
        file: settings in JSON or YAML, or a bundle.
        output: the folder; None for that of the file.
        pipeline: which pipeline of a bundle; None for its only one.
        target: whose variables of a bundle count; None for the default one.
        as_json: end with one JSON object.

    Raises:
        UsageError: there is no such file, or the folder has a spec already; nothing was written.
        InvalidSpec: the file is not settings of a pipeline; nothing was written.
    """
    source_file = Path(file)
    if not source_file.is_file():
        raise UsageError(f"There is no file {file}.", remedy="Give the JSON or YAML file with the settings.")
    source = read_source(source_file, pipeline, target)
    folder = Path(output) if output is not None else source_file.parent
    sources = None
    if source.bundled is not None and output is not None:
        sources = bundle_sources(source.bundled, source.path, source_file.parent)
    if sources is not None:
        source.data["libraries"] = sources.libraries
    check_as_written(source)
    _refuse_taken(folder)
    copied = _to_copy(sources, folder)
    written = folder / SPEC_FILES[0]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"{folder} can't be made a folder: {error.strerror}.", remedy="Give another with -o."
        ) from None
    for origin, copy in copied:
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(origin, copy)
    write_atomically(written, spec_text(source.data, source.notes, source_file.name))
    if as_json:
        notes = [{"setting": n.setting, "becomes": n.becomes, "sentence": n.sentence} for n in source.notes]
        print_json({"state": "COMPLETED", "file": str(written), "notes": notes, "copied": len(copied)})
        return 0
    for note in source.notes:
        print(_one_line(str(note)))
    if sources is not None and copied:
        print(f"Copied {len(copied)} files of {sources.root}.")
    elif source.bundled is not None and output is not None and sources is None:
        print(
            f"No sources were copied: not all are files below {source_file.parent}. Copy them, and correct `libraries`."
        )
    print(f"Wrote {written}.")
    return 0


def _to_copy(sources: BundleSources | None, folder: Path) -> list[tuple[Path, Path]]:
    """The files of a bundle's pipeline and where they go; raises UsageError where one is there already."""
    if sources is None or folder.resolve() == sources.root.resolve():
        return []
    pairs = [(sources.root / below, folder / below) for below in sources.files()]
    taken = next((copy for _, copy in pairs if os.path.lexists(copy)), None)
    if taken is not None:
        raise UsageError(f"{taken} is there already.", where=taken, remedy="Give another folder with -o.")
    return pairs


def _refuse_taken(folder: Path) -> None:
    taken = next((name for name in SPEC_FILES if os.path.lexists(folder / name)), None)
    if taken is not None:
        raise UsageError(
            f"{folder} has a {taken} already, and a folder holds one spec.",
            where=folder / taken,
            remedy="Give another folder with -o, or move that file away.",
        )


def spec_text(data: dict[str, Any], notes: Sequence[SettingNote], origin: str) -> str:
    """The text of ``pipeline.yml``: each note stands above the key that its setting became, the others at the beginning."""
    lines = [f"# Made from {_one_line(origin)}."]
    lines += [f"# {_one_line(str(note))}" for note in notes if note.becomes not in data]
    for key in (*(key for key in _ORDER if key in data), *(key for key in data if key not in _ORDER)):
        lines += [f"# {_one_line(str(note))}" for note in notes if note.becomes == key]
        lines.append(
            yaml.safe_dump({key: data[key]}, sort_keys=False, allow_unicode=True, width=110).rstrip("\n")
        )
    return "\n".join(lines) + "\n"


def _one_line(text: str) -> str:
    """A text that can't end the comment it stands in, whatever the settings had in it."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
