"""Folders of checkpoints that are there whole or not at all, also where their writer was killed.

On a disk a folder is filled under a hidden name and then renamed. A store has no rename: there an object beside the folder says
that it is being filled, and as long as that one is there, the folder is neither an epoch nor a copy.

Decision 0192.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from headwater.errors import HeadwaterError, LeaseLost
from headwater.files.atomic_files import make_folders, sync_folder
from headwater.storage.atomic import write_if_unchanged
from headwater.storage.object_path import ObjectPath
from headwater.storage.place import Place
from headwater.storage.walking import copy_files, files_below, remove_tree, unchecked

_MARK = re.compile(r"\.(.+)\.making")
# On a disk: what ``make_folder`` fills, with the letters that ``mkdtemp`` adds.
_HIDDEN = re.compile(r"\..+\.[a-z0-9_]{8}")


def make_folder(target: Place, fill: Callable[[Place], None]) -> Place:
    """Make a folder that is there whole or not at all, durable before it returns.

    Args:
        target: the folder; there is none of this name.
        fill: writes all that shall be in it below the place that it is given.

    Raises:
        LeaseLost: on a store, where another process makes the same folder, or has removed what this one wrote.
    """
    if isinstance(target, ObjectPath):
        _fill_beside_mark(target, fill)
        return target
    make_folders(target.parent)
    making = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    try:
        fill(making)
        _sync_all(making)
        making.chmod(0o755)
        making.rename(target)
    except BaseException:
        shutil.rmtree(making, ignore_errors=True)
        raise
    sync_folder(target.parent)
    return target


def unfinished(files: Iterable[str]) -> set[str]:
    """The folders that are being filled, or whose writer died meanwhile, by the names of the files beside them."""
    return {match[1] for name in files if (match := _MARK.fullmatch(name))}


def hidden_folders(folders: Iterable[str]) -> list[str]:
    """Those of a disk that are being filled, or whose writer died meanwhile, by the names of the folders beside them."""
    return sorted(name for name in folders if _HIDDEN.fullmatch(name))


def clear_unfinished(parent: Place) -> None:
    """Remove what writers that died have left below a folder of a store; whoever calls it holds the lease.

    On a disk such folders have hidden names, and maintenance removes them when they are old.
    """
    if isinstance(parent, ObjectPath):
        for name in sorted(unfinished(parent.children()[0])):
            remove_tree(parent / name)
            _mark(parent / name).unlink(missing_ok=True)


def copy_durably(
    source: Place,
    target: Place,
    keep: Callable[[Place], bool] = lambda _: True,
    check: Callable[[], None] = unchecked,
) -> None:
    """Copy a folder; files for which ``keep`` says no (given their path in ``source``) are left out.

    ``check``: called before each file; raises where the right to write is lost.
    """
    if isinstance(target, Path):
        make_folders(target)
    if not (isinstance(source, Path) and isinstance(target, Path)):
        copy_files(source, target, keep, check)
        return
    for parent, _, names in os.walk(source):
        into = target / Path(parent).relative_to(source)
        into.mkdir(parents=True, exist_ok=True)
        for name in names:
            file = Path(parent) / name
            if not keep(file):
                continue
            check()
            shutil.copy2(file, into / name)
            with (into / name).open("rb") as copied:
                os.fsync(copied.fileno())
    _sync_all(target)


def _sync_all(folder: Path) -> None:
    """Make the names in a folder and in those below it durable."""
    for parent, _, _ in os.walk(folder):
        sync_folder(Path(parent))


def _fill_beside_mark(target: ObjectPath, fill: Callable[[Place], None]) -> None:
    mark, mine = _mark(target), secrets.token_hex(16)
    write_if_unchanged(mark, mine, None)
    _refuse_taken(target, mark, mine)
    _refuse_filled(target, mark)
    try:
        fill(target)
        _refuse_taken(target, mark, mine)
    except BaseException:
        with suppress(HeadwaterError):  # the mark stays then, and the next repair removes both
            # Where it is gone, the folder was cleared away while this process stood still: what has come since is no folder.
            if write_if_unchanged(mark, mine, None):
                remove_tree(target)
                mark.unlink(missing_ok=True)
        raise
    mark.unlink(missing_ok=True)


def _refuse_filled(target: ObjectPath, mark: ObjectPath) -> None:
    """Refuse a folder that another process has filled to the end since this one looked which names are free."""
    if any(about.st_size for _, about in files_below(target)):
        mark.unlink(missing_ok=True)
        raise _taken(target)


def _mark(folder: ObjectPath) -> ObjectPath:
    return folder.with_name(f".{folder.name}.making")


def _is(mark: ObjectPath, text: str) -> bool:
    try:
        return mark.read_text() == text
    except FileNotFoundError:
        return False


def _refuse_taken(target: ObjectPath, mark: ObjectPath, mine: str) -> None:
    if not _is(mark, mine):
        raise _taken(target)


def _taken(target: ObjectPath) -> LeaseLost:
    return LeaseLost(
        "Another process works on this folder, so the lease was taken from this one.",
        where=target,
        remedy="What was live before is still live. Run the same command again once nothing else runs.",
    )
