"""Listing the files that Spark's file sources would read."""

from __future__ import annotations

import fnmatch
import glob
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import unquote, urlparse

from headwater.definitions.spark_timestamp import instant_of
from headwater.errors import SourceUnreachable
from headwater.metrics.stored_files import is_hidden as _hidden
from headwater.metrics.stored_files import stored_files
from headwater.storage.access import ObjectStore
from headwater.storage.globs import alternatives
from headwater.storage.place import is_s3

NO_FOLDER = (
    "Make the folder, or correct the path. /Volumes, /mnt and /FileStore of the closed platform are plain folders of the machine here; a path "
    "that differs from machine to machine belongs into `configuration` in pipeline.yml: spark.conf.get(\"landing\"), '${landing}' in SQL."
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = 1_000_000


@dataclass(frozen=True)
class ListedFile:
    """A file: absolute path or address, bytes, and modification time in ns since 1970. ``tag``: of an object, names its content."""

    path: str
    size: int
    modified_ns: int
    tag: str | None = None


def file_paths(path: str, options: Mapping[str, str], *, store: ObjectStore | None = None) -> Iterator[str]:
    """The absolute paths of the files at ``path``, whenever they were changed: a look at names, not at files.

    Raises as ``list_files`` does.
    """
    lowered = {key.lower(): value for key, value in options.items()}
    if is_s3(path):
        yield from sorted(stored_files(path, lowered, store))
        return
    for file in _listed(path, lowered):
        yield os.path.abspath(file.path)  # noqa: PTH100 - as Spark: links stay


def list_files(
    path: str, options: Mapping[str, str], *, store: ObjectStore | None = None
) -> list[ListedFile]:
    """The files below ``path`` (a file, folder or glob, on a disk or in S3), by path.

    Others write meanwhile: what vanishes between two looks, and a link that leads nowhere, is left out, as Spark does.

    Folders below are looked into where ``recursiveFileLookup`` is on or they are partitions (``day=1``);
    names that begin with ``_`` or ``.`` are left out, as Spark does. ``pathGlobFilter``, ``modifiedAfter`` and
    ``modifiedBefore`` (UTC where no zone is given) are honoured.

    Args:
        path: where they are.
        options: those of the read.
        store: how S3 is reached; by the driver's settings or the environment where it is not given.

    Raises:
        SourceUnreachable: if it is on another file system, not there, or something of it may not be read.
        StoreRefused, StoreUnreachable: S3 can't be listed.
    """
    lowered = {key.lower(): value for key, value in options.items()}
    after = instant_ns(lowered.get("modifiedafter"))
    before = instant_ns(lowered.get("modifiedbefore"))
    files = _objects(path, lowered, store) if is_s3(path) else _local_files(path, lowered)
    return [
        files[key]
        for key in sorted(files)
        if (after is None or _seen_by_spark(files[key]) > after)
        and (before is None or _seen_by_spark(files[key]) < before)
    ]


def _seen_by_spark(file: ListedFile) -> int:
    """When a file was changed, in the whole milliseconds that Spark compares."""
    return file.modified_ns // _MILLISECOND * _MILLISECOND


def _objects(path: str, lowered: Mapping[str, str], store: ObjectStore | None) -> dict[str, ListedFile]:
    return {
        # Whole milliseconds, as Spark notes them.
        address: ListedFile(address, listed.size, round(listed.modified * 1000) * 1_000_000, listed.tag)
        for address, (_, listed) in stored_files(path, lowered, store).items()
    }


def _local_files(path: str, lowered: Mapping[str, str]) -> dict[str, ListedFile]:
    files: dict[str, ListedFile] = {}
    for file in _listed(path, lowered):
        state = _state(file)
        if state is not None:
            files[file.path] = ListedFile(os.path.abspath(file.path), state.st_size, state.st_mtime_ns)  # noqa: PTH100 - as Spark: links stay
    return files


def _listed(path: str, lowered: Mapping[str, str]) -> Iterator[os.DirEntry[str]]:
    url = urlparse(path)
    if url.scheme not in ("", "file"):
        raise SourceUnreachable(f"{path} is neither on a local file system nor in s3://.")
    recursive = lowered.get("recursivefilelookup", "false").lower() == "true"
    patterns = alternatives(lowered.get("pathglobfilter", "*"))
    with _readable(path):
        for root in _roots(unquote(url.path) if url.scheme else path):
            for file in _below(root, recursive=recursive):
                if any(fnmatch.fnmatchcase(file.name, pattern) for pattern in patterns):
                    yield file


@contextmanager
def _readable(path: str) -> Iterator[None]:
    """Turn what the system refuses into the error of a source."""
    try:
        yield
    except OSError as error:
        raise _refused(error, path) from None


def _refused(error: OSError, path: str) -> SourceUnreachable:
    return SourceUnreachable(
        f"{error.filename or path} can't be read: {error.strerror or error}.",
        where=path,
        remedy="Give the user that runs Headwater the right to read it, or take it out of the source's path.",
    )


def _state(file: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return file.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _refused(error, file.path) from None


def instant_ns(text: str | None) -> int | None:
    """A point in time as ns since 1970 (UTC where no zone is given), None for None; raises SourceUnreachable."""
    if text is None:
        return None
    moment = instant_of(text, "UTC")
    if moment is None:
        raise SourceUnreachable(f"{text!r} is not a point in time; write it as 2026-01-31T00:00:00.")
    # In whole microseconds: a float of seconds has fewer digits.
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000


def _roots(path: str) -> list[Path]:
    if not any(sign in path for sign in "*?[{"):
        if not Path(path).exists():
            raise SourceUnreachable(f"There is no file or folder {path}.", where=path, remedy=NO_FOLDER)
        return [Path(path)]
    return [Path(match) for pattern in alternatives(path) for match in _matches(pattern)]


def _matches(pattern: str) -> list[str]:
    parts = Path(pattern).parts
    for end in range(1, len(parts)):
        if glob.has_magic(parts[end]):
            # Python's glob is silent about folders that it may not list.
            for folder in glob.glob(str(Path(*parts[:end]))):  # noqa: PTH207 - absolute patterns
                with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder):
                    pass
    return sorted(glob.glob(pattern))  # noqa: PTH207 - absolute patterns


def _below(root: Path, *, recursive: bool) -> Iterator[os.DirEntry[str]]:
    if root.is_file():
        with os.scandir(root.parent) as entries:
            yield from (entry for entry in entries if entry.name == root.name)
        return
    for entry in _entries(root):
        if _hidden(entry.name):
            continue
        if entry.is_dir():
            if recursive or "=" in entry.name:
                yield from _below(Path(entry.path), recursive=recursive)
        else:
            yield entry


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        return sorted(entries, key=lambda item: item.name)
    return []
