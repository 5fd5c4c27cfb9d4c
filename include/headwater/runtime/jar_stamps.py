"""Whether cached jars are the pinned ones, without reading them at each start.

Their checksums are compared whenever a file is not the one that was compared last: its inode or time of change (ctime, which no
program can set) is another. That finds what went wrong with a cache, on purpose or not; who may write the cache may write the
stamps as well, and is trusted like the owner of the virtual environment.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from headwater.runtime.jar_lock import PinnedJar, sha256

STAMPS = "verified.json"


def are_verified(folder: Path, jars: tuple[PinnedJar, ...]) -> bool:
    """Whether a folder has all jars with their checksums; what was compared is noted, where the folder can be written."""
    recorded = _recorded_stamps(folder)
    now: dict[str, list[Any]] = {}
    for jar in jars:
        file = folder / jar.file_name
        try:
            state = file.stat()
            now[jar.file_name] = [
                jar.sha256, state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns,
            ]  # fmt: skip
            if state.st_size != jar.size:
                return False
            if recorded.get(jar.file_name) != now[jar.file_name] and sha256(file) != jar.sha256:
                return False
        except FileNotFoundError:
            return False
    if recorded != now:
        with suppress(OSError):  # a cache in an image may be read-only
            (folder / STAMPS).write_text(json.dumps(now, indent=1) + "\n")
    return True


def _recorded_stamps(folder: Path) -> dict[str, Any]:
    try:
        stamps = json.loads((folder / STAMPS).read_text())
    except (OSError, ValueError):
        return {}
    return stamps if isinstance(stamps, dict) else {}
