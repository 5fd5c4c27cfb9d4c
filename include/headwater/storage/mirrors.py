"""Copies of Delta logs on this machine, so that opening a table on a store takes one listing and what is new.

A commit never changes once it is written, unless somebody damages it: a copy is right as long as the listing has its size and its
time. The copies of one log begin at its newest checkpoint, and at another one, or where the table is another, they lie in another folder.
Commits that the log does not have any more go: it was put back from a backup.

Decision 0185, decision 0221.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from headwater.storage.conditions import store_errors
from headwater.storage.listing import Listed, current_look
from headwater.storage.local_cache import cache_root
from headwater.storage.object_path import ObjectPath

if TYPE_CHECKING:
    from deltalake import DeltaTable

LOG = "_delta_log"
_COMMIT = re.compile(r"\d{20}\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")
_AT_ONCE = 16
_KEPT_SECONDS = 86400
# Times of copies are rounded by the disk.
_SAME_SECONDS = 0.001


def mirrored_log(table: ObjectPath) -> Path | None:
    """A local folder with the log of a table as it is now, without its data; None where the log can't be mirrored.

    That is where it has no commit, or checkpoints of other forms than one file.

    Raises:
        StoreRefused, StoreUnreachable: the log can't be listed or read.
        OSError: the cache of this machine can't be written to.
    """
    files = (table / LOG).listed()
    checkpoints = [name for name in files if ".checkpoint" in name]
    if not all(_CHECKPOINT.fullmatch(name) for name in checkpoints):
        return None
    base = max(checkpoints, default="")
    commits = sorted(name for name in files if _COMMIT.fullmatch(name) and name[:20] > base[:20])
    wanted = [base, *commits] if base else commits
    if not wanted or (not base and int(wanted[0][:20]) != 0):
        return None
    folder = _folder(table, f"{wanted[0]} {files[wanted[0]].tag}")
    _fetch(table / LOG, folder / LOG, wanted, files)
    _drop_what_was_taken_back(table / LOG, folder / LOG, wanted[-1])
    return folder


def _drop_what_was_taken_back(log: ObjectPath, copies: Path, newest: str) -> None:
    """Remove copies of commits that are behind the newest one and not there: the table was put back from a backup.

    A copy may be there because another process has listed the log later than this one; then its commit is there, too.
    """
    later = sorted(
        file.name
        for file in copies.iterdir()
        if _COMMIT.fullmatch(file.name) and file.name[:20] > newest[:20]
    )
    if later and not _is_there(log / later[0]):
        for name in later:
            (copies / name).unlink(missing_ok=True)


def _is_there(file: ObjectPath) -> bool:
    import obstore

    # Asked of the store itself: the listing of a look that is under way may be older than the commit.
    try:
        with store_errors(file):
            obstore.head(file.bucket.client, file.key)
    except FileNotFoundError:
        return False
    return True


def mirrored_table(table: ObjectPath) -> DeltaTable | None:
    """A table of which the data is here as well, for queries over a small one; None as of ``mirrored_log``."""
    from deltalake import DeltaTable

    folder = mirrored_log(table)
    if folder is None:
        return None
    opened = DeltaTable(str(folder))
    names = [unquote(path) for path in _column(opened.get_add_actions(), "path")]
    if any("/" in name or ":" in name for name in names):
        return None
    for name in names:
        for older in folder.parent.iterdir():
            if not (folder / name).exists() and (older / name).is_file():
                with suppress(OSError):
                    os.link(older / name, folder / name)
    _fetch(table, folder, names, None)
    return opened


def _column(actions: Any, name: str) -> list[str]:
    import pyarrow as pa

    values: list[str] = pa.table(actions)[name].to_pylist()
    return values


def _folder(table: ObjectPath, base: str) -> Path:
    """The folder of the copies that begin at a file of the log; others of the table that nobody used for a day are removed."""
    whose = hashlib.sha256(f"{table.bucket.access.endpoint} {table}".encode()).hexdigest()[:32]
    home = cache_root() / "mirrors" / whose
    folder = home / hashlib.sha256(base.encode()).hexdigest()[:16]
    if not folder.is_dir():
        (folder / LOG).mkdir(parents=True, exist_ok=True, mode=0o700)
        for other in home.iterdir():
            with suppress(FileNotFoundError):  # another process removes them, too
                if other != folder and time.time() - other.stat().st_mtime > _KEPT_SECONDS:
                    shutil.rmtree(other, ignore_errors=True)
    return folder


def _fetch(source: ObjectPath, target: Path, names: Iterable[str], files: dict[str, Listed] | None) -> None:
    """Copy what is not here yet, side by side; ``files``: sizes and times by which a copy is known to be that of the file."""
    missing = [name for name in names if not _is_here(target / name, files[name] if files else None)]
    if not missing:
        return

    def copy(name: str) -> None:
        making = target / f".{name}.{secrets.token_hex(6)}"
        making.write_bytes((source / name).read_bytes())
        if files:
            os.utime(making, (files[name].modified,) * 2)
        making.replace(target / name)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for _ in pool.map(copy, missing):
            pass


def _is_here(file: Path, listed: Listed | None) -> bool:
    """Whether a copy is here, with the size and the time that the listing has, where there is one: what was overwritten has another time."""
    try:
        about = file.stat()
    except FileNotFoundError:
        return False
    return listed is None or (
        about.st_size == listed.size and abs(about.st_mtime - listed.modified) < _SAME_SECONDS
    )


def remembered(key: object, make: Any) -> Any:
    """What ``make`` gives, once in a block of ``looked_over``."""
    look = current_look()
    if look is None:
        return make()
    if key not in look.tables:
        look.tables[key] = make()
    return look.tables[key]
