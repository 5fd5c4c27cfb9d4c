"""Notes what a pipeline's sources read while they are loaded and resolved: files by Python's audit events, and rows by Spark.

Only what the sources' own code asks for, directly or through a library; not Python's modules, nor what Spark and Headwater open.

Decision 0246.
"""

from __future__ import annotations

import logging
import os
import sys
import sysconfig
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import source_from_cache
from pathlib import Path
from types import FrameType
from typing import Any

import pyspark

import headwater
import headwater_spark
from headwater.graph.files_read import content_digest, spelled_path

_log = logging.getLogger("headwater.sources")
_OWN = tuple(
    f"{Path(module.__file__ or '').parent}{os.sep}" for module in (headwater_spark, headwater, pyspark)
)
# What it opens, a source has asked for: dbutils.fs.
_ON_BEHALF = str(Path(headwater_spark.__file__ or "").parent / "loader" / "shims.py")
_OF_PYTHON = tuple(
    f"{path}{os.sep}"
    for path in {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)
_OF_THE_SYSTEM = ("/proc/", "/sys/", "/dev/", "/usr/share/", "/usr/lib/")
# Sources and modules of the pipeline's folder have a part in the hash of its sources.
_CODE = (".py", ".pyc", ".ipynb", ".sql")
_LISTINGS = ("os.listdir", "os.scandir")


class _Active(threading.local):
    noted: NotedReads | None = None


_ACTIVE = _Active()
_HOOKED = threading.Event()


class NotedReads:
    """What was read.

    Attributes:
        files: files and listed folders by their spelled path, with the digest of what was in them before they were read first.
        rows: whether a query was run by Spark.

    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._roots = tuple({f"{folder}{os.sep}", f"{folder.resolve()}{os.sep}"})
        self._busy = False
        self.files: dict[str, str] = {}
        self.rows = False

    def note(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Take an audit event; raises nothing, for what is raised in there fails the call that is audited."""
        if self._busy:
            return
        self._busy = True
        try:
            frame = sys._getframe(2)  # noqa: SLF001 - whoever opens it
            path = None if event in _LISTINGS and _is_import(frame) else _path_of(event, arguments)
            if path is not None and self._is_input(path) and self._asked_by_sources(frame):
                name = spelled_path(path, self._folder)
                if name not in self.files:
                    self.files[name] = content_digest(self._folder / name)
        except (ValueError, OSError) as error:
            _log.debug("What a source reads was not noted: %s.", error)
        finally:
            self._busy = False

    def _is_input(self, path: str) -> bool:
        absolute = os.path.abspath(path)  # noqa: PTH100 - links are not followed
        if absolute.startswith((*_OF_PYTHON, *_OWN, *_OF_THE_SYSTEM)):
            return False
        return not (absolute.endswith(_CODE) and absolute.startswith(self._roots))

    def _asked_by_sources(self, frame: FrameType | None) -> bool:
        while frame is not None:
            file = frame.f_code.co_filename
            if file.startswith(_OWN) and file != _ON_BEHALF:
                return False
            if file.startswith(self._roots) and not file.startswith(_OF_PYTHON):
                return True
            frame = frame.f_back
        return False


@contextmanager
def noting_reads(folder: Path) -> Iterator[NotedReads]:
    """Note what the code of the pipeline in ``folder`` reads inside the block, in this thread."""
    if not _HOOKED.is_set():
        _HOOKED.set()
        sys.addaudithook(_hook)  # it can't be taken out again
    before, noted = _ACTIVE.noted, NotedReads(folder)
    _ACTIVE.noted = noted
    try:
        yield noted
    finally:
        _ACTIVE.noted = before


def note_rows() -> None:
    """Note that a source runs a query."""
    if _ACTIVE.noted is not None:
        _ACTIVE.noted.rows = True


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" or event in _LISTINGS:
        noted = _ACTIVE.noted
        if noted is not None:
            noted.note(event, arguments)


def _path_of(event: str, arguments: tuple[Any, ...]) -> str | None:
    """The path that is read; None where it is only written, or is no path."""
    path = arguments[0]
    if event in _LISTINGS:
        path = "." if path is None else path
    elif not _reads(*arguments[1:]):
        return None
    if not isinstance(path, str | bytes | os.PathLike):
        return None
    text = os.fsdecode(path)
    # A module that was compiled before is read from there, and changes with its source.
    return source_from_cache(text) if text.endswith(".pyc") and "__pycache__" in text else text


def _is_import(frame: FrameType) -> bool:
    """Whether Python looks for a module; where it looks is no matter of the pipeline."""
    return frame.f_code.co_filename.startswith("<frozen importlib")


def _reads(mode: Any, flags: int) -> bool:
    if isinstance(mode, str):
        return not set(mode) & set("wax")
    return not flags & (os.O_WRONLY | os.O_RDWR | os.O_DIRECTORY)
