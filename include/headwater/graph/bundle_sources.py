"""The sources of a bundle's pipeline: where they lie, and how the folder of a pipeline names them.

Decision 0161.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SUFFIXES = ("", ".py", ".sql", ".ipynb")
# What sources are, import, or read as their settings.
_COPIED = {".py", ".sql", ".ipynb", ".json", ".yml", ".yaml", ".toml", ".txt", ".csv"}
_PATTERN = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class BundleSources:
    """``root``: the folder that all of them lie in. ``libraries``: as a spec in a copy of that folder names them."""

    root: Path
    libraries: list[dict[str, Any]]

    def files(self) -> Iterator[Path]:
        """What is copied, by its path from the root: sources and what lies beside them; hidden folders and caches are not."""
        for path in sorted(self.root.rglob("*")):
            below = path.relative_to(self.root)
            hidden = any(part.startswith(".") or part == "__pycache__" for part in below.parts)
            if path.is_file() and not hidden and path.suffix.lower() in _COPIED:
                yield below


def bundle_sources(settings: Mapping[str, Any], file: Path, bundle: Path) -> BundleSources | None:
    """Find the sources of a pipeline.

    Args:
        settings: of the pipeline, as the bundle has them.
        file: in which they stand; paths count from its folder.
        bundle: the bundle's folder; nothing outside is read.

    Returns:
        None where the sources are not files of the bundle: addresses of a workspace, or libraries of other kinds.
    """
    entries = settings.get("libraries")
    if not isinstance(entries, list) or not entries:
        return None
    entries_there = [_entry(one, file.parent) for one in entries]
    if None in entries_there:
        return None
    known = [one for one in entries_there if one is not None]
    root_path = settings.get("root_path")
    root = (
        _absolute(file.parent, root_path)
        if isinstance(root_path, str)
        else _common([one[2] for one in known])
    )
    inside = root.is_dir() and root.is_relative_to(_absolute(bundle, "."))
    if not inside or not all(one[2].is_relative_to(root) for one in known):
        return None
    libraries = [
        {kind: {**inner, key: _below(inner[key], file.parent, root)}} for kind, key, _, inner in known
    ]
    return BundleSources(root, libraries)


def _entry(entry: Any, folder: Path) -> tuple[str, str, Path, dict[str, Any]] | None:
    """The kind of a library, the key of its path, the folder that it lies in, and its settings; None where it is no file."""
    for kind, key in (("glob", "include"), ("file", "path"), ("notebook", "path")):
        inner = entry.get(kind) if isinstance(entry, Mapping) else None
        if not isinstance(inner, Mapping) or not isinstance(inner.get(key), str):
            continue
        plain = _PATTERN.split(inner[key])[0]
        if kind == "glob" or plain != inner[key]:  # a deployment takes patterns for single files, too
            base = plain if plain == inner[key] else plain.rpartition("/")[0]
            place = _absolute(folder, base or ".")
            return (
                (kind, key, place if place.is_dir() else place.parent, dict(inner))
                if place.exists()
                else None
            )
        path = next(
            (p for suffix in _SUFFIXES if (p := _absolute(folder, inner[key] + suffix)).is_file()), None
        )
        return None if path is None else (kind, key, path.parent, {**inner, key: str(path)})
    return None


def _below(path: str, folder: Path, root: Path) -> str:
    return _absolute(folder, path).relative_to(root).as_posix()


def _absolute(folder: Path, path: str) -> Path:
    return Path(os.path.abspath(folder / path))  # noqa: PTH100 - a link stays what it is called


def _common(folders: list[Path]) -> Path:
    return Path(os.path.commonpath(folders))
