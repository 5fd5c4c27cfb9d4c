"""Data files of a table that are gone or cut: what its log has, against what lies there.

Decision 0241.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from urllib.parse import unquote

from headwater.delta_log.commits import commit_file, commit_versions
from headwater.delta_log.listed_files import listed_files
from headwater.delta_log.table_history import readable_log
from headwater.files.json_lines import byte_lines
from headwater.storage.delta_tables import log_file
from headwater.storage.place import Place, parts_below
from headwater.storage.walking import files_below

# Commits that are looked back for one whose files are still the table's, and files of it that are looked at.
_COMMITS = 5
_FILES = 16


def missing_of_newest(table: Place) -> list[str]:
    """What is wrong with the files of the newest commit that added any, one text a file: they are gone, or have another size.

    Files that later commits have removed are no longer the table's. At most 16 are looked at, side by side.

    Raises:
        FileNotFoundError: a commit was cleaned away meanwhile.
        ValueError: a commit is damaged.
    """
    removed: set[str] = set()
    for version in reversed(commit_versions(table)[-_COMMITS:]):
        added: dict[str, int] = {}
        for line in byte_lines(log_file(commit_file(table, version))):
            if line.startswith(b'{"remove"'):
                removed.add(str(json.loads(line)["remove"]["path"]))
            elif line.startswith(b'{"add"') and len(added) < _FILES + len(removed):
                about = json.loads(line)["add"]
                added[str(about["path"])] = int(about["size"])
        files = {path: size for path, size in added.items() if path not in removed and _lies_inside(path)}
        if files:
            with ThreadPoolExecutor(_FILES) as pool:
                faults = pool.map(lambda item: _fault(table, *item), list(files.items())[:_FILES])
                return [fault for fault in faults if fault is not None]
    return []


def missing_of_all(table: Place) -> list[str]:
    """As ``missing_of_newest``, of all files that the table has now, by a listing of its folder."""
    opened = readable_log(table)
    if opened is None:
        return []
    there = {"/".join(parts_below(file, table)): about.st_size for file, about in files_below(table)}
    return list(
        _differences({str(row["path"]): int(row["size_bytes"]) for row in listed_files(opened)}, there)
    )


def _differences(files: dict[str, int], there: dict[str, int]) -> Iterator[str]:
    for path, size in files.items():
        name = unquote(path)
        if _lies_inside(path) and there.get(name) != size:
            yield _said(name, there.get(name), size)


def _lies_inside(path: str) -> bool:
    """Whether a file has a plain name below the table: those of a shallow clone are addresses, and ``%`` is spelled in two ways on stores."""
    name = unquote(path)
    return ":" not in name and "%" not in name and not name.startswith("/")


def _fault(table: Place, path: str, size: int) -> str | None:
    name, now = unquote(path), None
    with suppress(FileNotFoundError):
        now = table.joinpath(*name.split("/")).stat().st_size
    return None if now == size else _said(name, now, size)


def _said(name: str, now: int | None, size: int) -> str:
    return f"{name} is gone" if now is None else f"{name} has {now} bytes instead of {size}"
