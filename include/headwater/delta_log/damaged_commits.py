"""Commits that were not written to their end, that lack files, or that are there twice: what a crash, a full disk or a copy leaves.

Decision 0221, decision 0235, decision 0236, decision 0241.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from io import SEEK_END
from pathlib import Path
from typing import Any

from headwater.delta_log.commits import is_commit, log_folder
from headwater.files.json_lines import byte_lines
from headwater.storage.delta_tables import log_file
from headwater.storage.object_files import opened
from headwater.storage.place import Place
from headwater.storage.walking import sizes_in

# Commits of the newest one's size that it is compared with; Delta writes a checkpoint after ten.
_COMPARED = 20
# What writers say of their commits in ``operationMetrics``, Spark's and delta-rs: files added and files removed.
_ADDED = (
    "numAddedFiles",
    "numTargetFilesAdded",
    "numRestoredFiles",
    "num_added_files",
    "num_target_files_added",
)
_REMOVED = ("numRemovedFiles", "numTargetFilesRemoved", "num_removed_files", "num_target_files_removed")
# Statistics are a text, and begin with the rows; what stands in a value has other quotation marks.
_ROWS = re.compile(rb'"stats":"\{\\"numRecords\\":(\d+)')
_CHECKPOINT = re.compile(r"\d{20}\.checkpoint\.parquet")
_CHECKSUM = re.compile(r"\d{20}\.crc")
# Says which checkpoint is the newest.
POINTER = "_last_checkpoint"
# What a Parquet file begins and ends with.
_PARQUET = b"PAR1"
_PLAIN_WRITE = re.compile(rb'"operation":"WRITE"')


def damaged_commit(table: Place, *, readable: bool = True, since: int = 0) -> tuple[Place, str] | None:
    """A commit that was not written to its end, is a copy of another or left its checksum alone, and what is wrong with it; None where none is found.

    Looked at are the newest one, and the sizes of those that are in no checkpoint: an empty one is read as one without rows.

    Args:
        table: the table's folder.
        readable: whether the table can be opened; where it can't, all commits are looked at that are in no checkpoint.
        since: the version before which commits do not matter to who asks.
    """
    log = log_folder(table)
    sizes = sizes_in(log)
    kept = max((name[:20] for name in sizes if ".checkpoint" in name and name[:20].isdigit()), default="")
    commits = sorted(name for name in sizes if is_commit(name) and int(name[:20]) >= since)
    later = [name for name in commits if name[:20] > kept]
    empty = next((name for name in later if not sizes[name]), None)
    if empty is not None:
        return log / empty, "the file is empty"
    for name in commits[-1:] if readable else [*later, *commits[-1:]]:
        fault = commit_fault(log_file(log / name))
        if fault is not None:
            return log / name, fault
    if commits:
        newest = commits[-1]
        alike = [
            name
            for name, size in sizes.items()
            if size == sizes[newest] and kept < name[:20] and name < newest and is_commit(name)
        ]
        original = _copied_from(log, newest, sorted(alike)[-_COMPARED:])
        if original is not None:
            return log / newest, f"it is a copy of version {original}"
    # A log without commits may go on from its checkpoint.
    return _lost(log, commits[-1] if commits else "", sizes) if commits or not kept else None


def _lost(log: Place, newest: str, names: Iterable[str]) -> tuple[Place, str] | None:
    """The commit of a checksum that is ahead of the log: Delta writes it behind the commit, and delta-rs opens no such table."""
    ahead = max((name for name in names if _CHECKSUM.fullmatch(name)), default="")
    file = log / f"{ahead[:20]}.json"
    # A listing of a folder may see the checksum of a commit that is written meanwhile, and not the commit.
    if ahead[:20] <= newest[:20] or file.exists():
        return None
    return file, f"it is gone, and its checksum {ahead} is there"


def damaged_checkpoint(table: Place, *, readable: bool = False) -> tuple[Place, str] | None:
    """The newest checkpoint of a log where it is gone, or is one file that was not written to its end, and what is wrong; None for another.

    ``readable``: the table can be opened here, from a copy of its log that needs no checkpoint: only where the log's one is gone,
    which the listing shows, others can't open it. Else the end of the file is looked at, a request on a store.
    """
    log = log_folder(table)
    sizes = sizes_in(log)
    if POINTER in sizes and not any(".checkpoint" in name for name in sizes):
        return log / POINTER, "the checkpoint that it names is gone"
    if readable:
        return None
    gone = _checkpoint_that_is_gone(log, sizes)
    if gone is not None:
        return gone
    name = max((name for name in sizes if _CHECKPOINT.fullmatch(name)), default=None)
    if name is None:
        return None
    if sizes[name] < 2 * len(_PARQUET):
        return log / name, "the file is empty" if not sizes[name] else "the file is cut off"
    file = log / name
    with file.open("rb") if isinstance(file, Path) else opened(file) as stream:
        stream.seek(-len(_PARQUET), SEEK_END)
        return None if stream.read() == _PARQUET else (file, "the file is cut off")


def _checkpoint_that_is_gone(log: Place, names: Iterable[str]) -> tuple[Place, str] | None:
    """The checkpoint that the log names as its newest, or without which its oldest commits mean nothing."""
    there = {int(name[:20]) for name in names if ".checkpoint" in name and name[:20].isdigit()}
    with suppress(FileNotFoundError, ValueError, KeyError, TypeError):
        named = int(json.loads((log / POINTER).read_text(encoding="utf-8"))["version"])
        if named not in there:
            return log / f"{named:020d}.checkpoint.parquet", f"it is gone, and `{POINTER}` names it"
    first = min((int(name[:20]) for name in names if is_commit(name)), default=0)
    if first > 0 and not there:
        return log, f"the log begins at version {first}, and the checkpoint before it is gone"
    return None


def _copied_from(log: Place, newest: str, alike: list[str]) -> int | None:
    """Of commits of one size, the one that has the same bytes: no writer makes two such, each names its time and new files (decision 0235)."""
    if not alike:
        return None
    content = log_file(log / newest).read_bytes()
    return next(
        (int(name[:20]) for name in reversed(alike) if log_file(log / name).read_bytes() == content), None
    )


def commit_fault(file: Place) -> str | None:
    """What is wrong with a commit that was not written to its end, in words; None where it is whole as far as it says itself.

    Only its last line and what the writer says of it are parsed: a cut leaves the lines before it as they were.
    """
    lines = [line for line in byte_lines(file) if line.strip()]
    if not lines:
        return "the file is empty" if not file.stat().st_size else "the file has only blanks"
    try:
        if not isinstance(json.loads(lines[-1]), dict):
            return "its last line is not a JSON object"
    except ValueError:
        return f"its last line ({len(lines)}) is cut short or damaged"
    return _what_it_lacks(lines)


def _what_it_lacks(lines: Sequence[bytes]) -> str | None:
    """A commit that ends with a line has lost others where its writer says that it has more files than are there."""
    info = next((line for line in lines if line.startswith(b'{"commitInfo"')), None)
    said = _metrics(info) if info is not None else {}
    # Files of a change feed are counted as added by some writers.
    added = sum(line.startswith((b'{"add"', b'{"cdc"')) for line in lines)
    removed = sum(line.startswith(b'{"remove"') for line in lines)
    for names, there, done in ((_ADDED, added, "adds"), (_REMOVED, removed, "removes")):
        files = max((said.get(name, 0) for name in names), default=0)
        if files > there:
            return f"it says that it {done} {_files(files)}, and {'none is' if not there else f'only {there} are'} in it"
    # Spark counts files of a plain write that it leaves out, since they have no row: its rows say more.
    if not added and said.get("numFiles", 0) and said.get("numOutputRows", 0):
        return f"it says that it writes {said['numOutputRows']} rows, and no file is in it"
    rows = _rows_of(lines) if info is not None and _PLAIN_WRITE.search(info) else None
    if rows is not None and rows < said.get("numOutputRows", 0):
        return f"it says that it writes {said['numOutputRows']} rows, and the files in it have {rows}"
    return None


def _rows_of(lines: Sequence[bytes]) -> int | None:
    """The rows of the files that are added, by their statistics; None where one has none, or a change feed has rows of its own."""
    rows = 0
    for line in lines:
        if line.startswith(b'{"cdc"'):
            return None
        if line.startswith(b'{"add"'):
            match = _ROWS.search(line)
            if match is None:
                return None
            rows += int(match[1])
    return rows


def _metrics(info: bytes) -> Mapping[str, int]:
    try:
        stated: Any = json.loads(info)["commitInfo"].get("operationMetrics")
    except (ValueError, AttributeError, KeyError):
        return {}
    items = stated.items() if isinstance(stated, dict) else ()
    return {name: int(value) for name, value in items if str(value).isdigit()}


def _files(number: int) -> str:
    return "1 file" if number == 1 else f"{number} files"
