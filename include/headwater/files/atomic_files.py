"""Writing a file in one step: readers see the old or the new text, also after a crash, and its rights and links stay."""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from headwater.errors import StorageFailed
from headwater.storage.place import Place

# Random bytes in the name of a file that is being written, and that name: of which file, and the bytes.
_RANDOM = 6
_TEMPORARY = re.compile(rf"\.(.+)\.[0-9a-f]{{{2 * _RANDOM}}}")


def write_atomically(path: Place, text: str) -> None:
    """Replace a file's text, durable before it returns. On an object store that is one put.

    The new file has the mode and, where this user may give it away, the owner of the old one; a first one has what the umask
    leaves, as any file that a program opens. Where ``path`` is a link, its target is replaced and the link stays.

    Raises:
        StorageFailed: where this user has no right to write there; the old text stands.
        OSError: where the disk is full or away; the old text stands.
    """
    if not isinstance(path, Path):
        path.write_text(text)
        return
    try:
        _replace(Path(os.path.realpath(path)), text)
    except PermissionError as error:
        raise StorageFailed(
            f"{path.name} can't be written: {error.strerror}.",
            where=path,
            remedy=f"Give {who_asks()} the right to write in this folder ({whose(path.parent)}).",
        ) from None


def is_unfinished_write(name: str, files: Iterable[str]) -> bool:
    """Whether a file of this name is what a process that died in ``write_atomically`` has left beside one of ``files``."""
    beside = _TEMPORARY.fullmatch(name)
    return beside is not None and beside[1] in files


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable: a rename alone may be undone by a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folders(folder: Path) -> None:
    """Make a folder and those above it, durably: the name of each is in the one above, which a power cut may set back."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(exist_ok=True)
        sync_folder(path.parent)


def who_asks() -> str:
    """The user of this process, in words."""
    return f"the user with the number {os.geteuid()}"


def whose(path: Place) -> str:
    """The owner and the permissions of a file or folder, in words."""
    if not isinstance(path, Path):
        return "it lies on an object store"
    try:
        state = path.stat()
    except OSError:
        return "its owner can't be seen either"
    kind = "folder" if stat.S_ISDIR(state.st_mode) else "file"
    return f"the {kind} belongs to user {state.st_uid}, group {state.st_gid}, mode {stat.S_IMODE(state.st_mode):04o}"


def _replace(target: Path, text: str) -> None:
    make_folders(target.parent)
    # Not mkstemp: that makes files for one user alone. The kernel applies the umask, which no thread can read safely.
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(_RANDOM)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            _take_over(stream.fileno(), target)
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
        sync_folder(target.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _take_over(descriptor: int, old: Path) -> None:
    """Give the new file the permissions of the one that it replaces."""
    try:
        state = old.stat()
    except FileNotFoundError:
        return
    new = os.fstat(descriptor)
    if (new.st_uid, new.st_gid) != (state.st_uid, state.st_gid):
        with suppress(PermissionError):  # only root may give a file away
            os.fchown(descriptor, state.st_uid, state.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(state.st_mode))
