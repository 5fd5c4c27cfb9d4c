"""Files that a pipeline's sources read while they are loaded, as lists of tables: what stands in them is a part of the definition.

Decision 0246.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

ABSENT = "absent"
# A longer file goes by its size and the time of its change.
_MOST_BYTES = 16 << 20


def spelled_path(path: str, folder: Path) -> str:
    """A path as the manifest has it: from the pipeline's folder where it lies there, so that it is the same on every machine."""
    # Links are not followed: a mounted setting is a link to another file each time it changes.
    absolute = Path(os.path.abspath(path))  # noqa: PTH100
    return absolute.relative_to(folder).as_posix() if absolute.is_relative_to(folder) else absolute.as_posix()


def content_digest(path: Path) -> str:
    """What tells one content of a file from another, or one list of a folder's names; hidden names and caches do not count."""
    try:
        if path.is_dir():
            names = sorted(entry.name for entry in path.iterdir())
            shown = (name for name in names if not name.startswith((".", "__pycache__")))
            return _digest("\0".join(shown).encode("utf-8", "surrogateescape"))
        state = path.stat()
        if state.st_size > _MOST_BYTES:
            return f"{state.st_size}-{state.st_mtime_ns}"
        return _digest(path.read_bytes())
    except FileNotFoundError:
        return ABSENT
    except OSError as error:
        return f"unreadable-{error.errno}"


def changed_files(files: Mapping[str, str], folder: Path) -> list[str]:
    """Those that have another content now.

    Args:
        files: by their spelled path, the digest of what was read.
        folder: the pipeline's.
    """
    return [name for name, digest in files.items() if content_digest(folder / name) != digest]


def files_digest(files: Mapping[str, str]) -> str:
    """One digest of all of them; empty where there are none."""
    return (
        _digest("\0".join(f"{name} {digest}" for name, digest in sorted(files.items())).encode())
        if files
        else ""
    )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]
