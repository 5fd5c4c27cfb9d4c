"""Streams from a folder that was moved, or that is now named in another way: Spark identifies files by path alone.

Another spelling of the same path (relative, ``file:``, ``..``, a slash at the end) is the same to Spark. A folder that lies
elsewhere, or is reached through a link, is not: files that were read are read again, and a batch that was planned before ends in
``Wrong basePath`` from inside Spark.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from pathlib import Path

from headwater.checkpoints.conditions import SourceMoved
from headwater.checkpoints.offsets import SeenFile, files_seen
from headwater.definitions.source import SourceKind
from headwater.errors import CheckpointUnreadable, SourceUnreachable
from headwater.preflight.damage import Damage, Repair
from headwater.preflight.file_source_checks import last_entry
from headwater.preflight.flow_start import FlowStart, StreamSource
from headwater.storage.conditions import STORE_ERRORS
from headwater.storage.globs import plain_part
from headwater.storage.place import is_s3

_SHOWN = 10
_SIGNS = frozenset("*?[{")


def folder_was_moved(start: FlowStart) -> Iterator[Damage]:
    """Whether a source's files have other paths than those that the flow has read them by."""
    for index, source in enumerate(start.sources or ()):
        if (
            source.kind is not SourceKind.FILES
            or source.path is None
            or _as_before(start, index, source.path)
        ):
            continue
        try:
            seen = files_seen(start.folder, index)
        except CheckpointUnreadable:
            continue  # the checks of the logs report it
        base = _base(source.path)
        outside = [file for file in seen if _is_whole(file.path) and not _is_below(file.path, base)]
        if not outside:
            continue
        planned = _planned(start, index, outside) if not _is_pattern(source.path) else []
        again = [] if planned else _read_again(source, base, seen, outside)
        if planned or again:
            yield _damage(start, source, base, outside, planned, again)


def _as_before(start: FlowStart, index: int, path: str) -> bool:
    """Whether the path is an absolute one, and the one of the last run: the list of files need not be read then."""
    recorded = start.state.sources[index].get("path") if index < len(start.state.sources) else None
    return recorded == path and (is_s3(path) or Path(path).is_absolute())


def _base(path: str) -> str:
    """The folder that a path names, as Spark spells it: absolute, without ``..``; links stay. Of a pattern its plain part."""
    if is_s3(path):
        return plain_part(path)
    plain: list[str] = []
    for part in Path(path).parts:
        if not _SIGNS.isdisjoint(part):
            break
        plain.append(part)
    return os.path.abspath(Path(*plain))  # noqa: PTH100 - resolve() would follow links


def _is_whole(path: str) -> bool:
    return path.startswith("/") or is_s3(path)


def _is_pattern(path: str) -> bool:
    return not _SIGNS.isdisjoint(path)


def _is_below(path: str, base: str) -> bool:
    return path == base or path.startswith(base.rstrip("/") + "/")


def _planned(start: FlowStart, index: int, outside: Iterable[SeenFile]) -> list[str]:
    """The files of a batch that is planned and not done: it is repeated with exactly these paths."""
    batch = max(start.planned, default=None)
    if batch is None or batch in start.committed:
        return []
    try:
        begin, end = last_entry(start, batch - 1, index), last_entry(start, batch, index)
    except CheckpointUnreadable:
        return []
    return [file.path for file in outside if begin < file.batch_id <= end]


def _read_again(
    source: StreamSource, base: str, seen: Iterable[SeenFile], outside: Iterable[SeenFile]
) -> list[str]:
    """Files that are there now under new paths and were read under old ones: by link, or moved or copied with their time."""
    seen_paths = {file.path for file in seen}
    by_name: dict[str, list[SeenFile]] = {}
    for file in outside:
        by_name.setdefault(Path(file.path).name, []).append(file)
    try:
        there = list(source.files()) if source.files is not None else []
    except (SourceUnreachable, *STORE_ERRORS, OSError):
        return []  # Spark reports what is missing
    return [path for path in there if path not in seen_paths and _was_read(path, base, by_name)]


def _was_read(path: str, base: str, by_name: Mapping[str, list[SeenFile]]) -> bool:
    candidates = by_name.get(Path(path).name, ())
    if not candidates:
        return False
    try:
        state = Path(path).stat()
    except OSError:
        return False
    tail = path[len(base.rstrip("/")) :]
    return any(
        (file.path.endswith(tail) and file.timestamp == state.st_mtime_ns // 1_000_000)
        or _is_same(file.path, state)
        for file in candidates
    )


def _is_same(path: str, state: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(path), state)  # noqa: PTH116 - a path of Spark's
    except OSError:
        return False


def _common_folder(folders: list[str]) -> str:
    levels = zip(*(folder.split("/") for folder in folders), strict=False)
    return "/".join(level[0] for level in takewhile(lambda level: len(set(level)) == 1, levels)) or "/"


def _damage(
    start: FlowStart,
    source: StreamSource,
    base: str,
    outside: list[SeenFile],
    planned: list[str],
    again: list[str],
) -> Damage:
    before = _common_folder([file.path.rpartition("/")[0] for file in outside])
    how = (
        f"batch {max(start.planned)}, which is planned and not done, names {len(planned)} files below {before}"
        if planned
        else f"{len(again)} files that it has read below {before} lie there under new paths, and their rows would come twice"
    )
    return Damage(
        SourceMoved(
            f"{start.flow!r} reads {source.path}, and {how}: Spark identifies files by path alone.",
            where=base,
            remedy=f"Let the source read {before} again (where the folder was moved, a link of that name will do); or take "
            f"all files that are older than a point in time as read, under their new paths: {start.command('new-epoch')} "
            f"--from-time TIME; or refill the table: headwater run PIPELINE_DIR --full-refresh {start.dataset}",
        ),
        tuple((planned or again)[:_SHOWN]),
        (Repair.NEW_EPOCH, Repair.FULL_REFRESH),
    )
