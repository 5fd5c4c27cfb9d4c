"""The archives with which a driver on another machine finds Headwater and its pipeline.

Decision 0187.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

from headwater.runtime.cache import cache_root
from headwater.runtime.jar_lock import sha256

# The folder of the archive of code, below the driver's working directory.
CODE = "headwater_code"
_LEFT_OUT = {"__pycache__", "pipelines", "spark-warehouse"}
# The same for every build, so that an archive is named by its content.
_DATE = (2026, 1, 1, 0, 0, 0)


def code_archive(home: Path) -> Path:
    """An archive of ``include`` and ``jobs`` of a checkout, without pipelines; made once for each content."""
    return _archive("code", home, [file for part in ("include", "jobs") for file in _files(home / part)])


def pipeline_archive(folder: Path) -> Path:
    """An archive of a pipeline's folder; made once for each content."""
    return _archive("pipeline", folder, list(_files(folder)))


def _files(folder: Path) -> Iterator[Path]:
    """What is below a folder, without what is hidden or made by Python."""
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _LEFT_OUT and not name.startswith("."))
        yield from (Path(parent, name) for name in sorted(names) if not name.startswith("."))


def _archive(kind: str, root: Path, files: list[Path]) -> Path:
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(root)} {sha256(file)}\n".encode())
    archive = cache_root() / "shipped" / f"{kind}-{digest.hexdigest()[:16]}.zip"
    if archive.exists():
        return archive
    archive.parent.mkdir(parents=True, exist_ok=True)
    fresh = archive.with_name(f".{archive.name}.{os.getpid()}")
    with zipfile.ZipFile(fresh, "w") as packed:
        for file in files:
            entry = zipfile.ZipInfo(str(file.relative_to(root)), _DATE)
            packed.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)
    fresh.replace(archive)
    return archive
