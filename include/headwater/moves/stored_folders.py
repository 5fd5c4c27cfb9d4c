"""A folder of a store that gets another address: the store copies it, the copies are compared, and then the old objects go.

Until every copy is what its original is, nothing of the old folder goes; from the first removal on the new one is whole. A mark
beside the new folder (``.NAME.making``) says that it is being filled. A table can be read at its new address by the last objects
of its log that are copied, and not any more at its old one from the first that are removed: no reader sees a part of it.

Decision 0198.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from headwater.errors import RefusedForSafety
from headwater.storage.atomic import create_text
from headwater.storage.listing import Listed
from headwater.storage.object_files import objects_of
from headwater.storage.object_path import ObjectPath
from headwater.storage.place import Place
from headwater.storage.walking import copy_file, remove_files

_T = TypeVar("_T")
_AT_ONCE, _A_REQUEST = 16, 1000
# Bytes: what a store copies by one request, and up to which size copies are compared by content where their tags differ.
_LARGEST, _COMPARED = 5 << 30, 65536
# By these a reader begins: the first commit, and what stands for all commits up to one.
_BEGINNING = re.compile(r"(0{20}\.json|\d{20}\.(checkpoint|\d{20}\.compacted)\..*)")
_FIRST = f"{0:020d}.json"


def contents(folder: ObjectPath) -> dict[str, Listed]:
    """The objects below a folder by their names from there, without the marks of folders."""
    try:
        return {key[len(folder.key) + 1 :]: listed for key, listed in objects_of(folder).items()}
    except FileNotFoundError:
        return {}


def is_there(folder: Place) -> bool:
    """Whether a folder is there; on a store, whether anything lies in it but marks of folders, which nobody can remove."""
    return folder.exists() if isinstance(folder, Path) else bool(contents(folder))


def weighed(folder: Place) -> tuple[int, int] | None:
    """How many objects a rename has to copy, and their bytes; None where nothing is copied.

    Raises:
        RefusedForSafety: one is larger than what a store copies.
    """
    if isinstance(folder, Path):
        return None
    sizes = {name: listed.size for name, listed in contents(folder).items()}
    large = next((name for name, size in sizes.items() if size > _LARGEST), None)
    if large is not None:
        raise RefusedForSafety(
            f"A store copies objects of up to {_LARGEST} bytes in one step, and this one has {sizes[large]}.",
            where=folder / large,
            remedy="Let `headwater maintenance PIPELINE_DIR --yes` write the table into smaller files first.",
        )
    return len(sizes), sum(sizes.values())


def carry_over(before: ObjectPath, after: ObjectPath, check: Callable[[], None]) -> None:
    """Bring a folder to its new address, or finish what an earlier try has begun.

    Args:
        before: the folder; where nothing is in it, an earlier try has ended.
        after: its new address; nothing but what an earlier try has copied may be there.
        check: raises where the right to write is lost; called before each copy and each request that removes.

    Raises:
        FileExistsError: something of somebody else's is there.
        RefusedForSafety: a copy is not what its original is; the old folder is as it was.
        What ``check`` raises.
    """
    originals = contents(before)
    if not originals:
        return
    mark = after.with_name(f".{after.name}.making")
    copies = contents(after)
    filling = mark.exists()
    if not copies or filling:
        check()
        mark.write_text("")
        _copy(before, after, originals, check)
        check()
        mark.unlink(missing_ok=True)
    elif _different(before, after, originals, copies):
        raise _taken(after)
    order = sorted(originals, key=lambda name: (-_stage(name), name))
    for start in range(0, len(order), _A_REQUEST):
        check()
        remove_files([before / name for name in order[start : start + _A_REQUEST]])


def _copy(
    before: ObjectPath, after: ObjectPath, originals: Mapping[str, Listed], check: Callable[[], None]
) -> None:
    _claim(before, after, originals)
    for stage in range(_stage("_delta_log/_last_checkpoint") + 1):
        copies = contents(after)
        if copies.keys() - originals.keys():
            raise _taken(after)
        names = [name for name in originals if _stage(name) == stage]
        missing = _different(before, after, {name: originals[name] for name in names}, copies)
        if set(missing) & copies.keys():
            raise _taken(after)

        def copy(name: str) -> None:
            check()
            if Path(name).name == _FIRST:
                _create(before / name, after / name)
            else:
                copy_file(before / name, after / name)

        _at_once(copy, missing)
    different = _different(before, after, originals, contents(after))
    if different:
        raise RefusedForSafety(
            f"{len(different)} of {len(originals)} copies are not what their originals are, {different[0]} is the first.",
            where=after,
            remedy="Nothing of the old folder was removed. Run the same command again; if it stays, see who else writes there.",
        )


def _claim(before: ObjectPath, after: ObjectPath, originals: Mapping[str, Listed]) -> None:
    """Copy a table's newest commit first: with it, and without the first one, nobody can create a table there or read one."""
    commits = sorted(name for name in originals if re.fullmatch(r"_delta_log/\d{20}\.json", name))
    if len(commits) > 1 and not (after / commits[-1]).exists():
        if contents(after):
            raise _taken(after)
        copy_file(before / commits[-1], after / commits[-1])


def _create(original: ObjectPath, copy: ObjectPath) -> None:
    """Copy a table's first commit where there is none: a table of somebody else's begins with it, too."""
    text = original.read_text()
    if create_text(copy, text) is None and copy.read_text() != text:
        raise _taken(copy)


def _stage(name: str) -> int:
    """When an object is copied: rows, then commits, then what makes a table of them, then what speeds its reading up."""
    *folders, last = name.split("/")
    if "_delta_log" not in folders:
        return 0
    if last == "_last_checkpoint":
        return 3
    return 2 if _BEGINNING.fullmatch(last) else 1


def _different(
    before: ObjectPath, after: ObjectPath, originals: Mapping[str, Listed], copies: Mapping[str, Listed]
) -> list[str]:
    """The originals that have no copy of the same content, by name."""

    def same(name: str) -> bool:
        original, copy = originals[name], copies.get(name)
        if copy is None or copy.size != original.size:
            return False
        if copy.tag == original.tag or original.size > _COMPARED:
            return True
        return (before / name).read_bytes() == (after / name).read_bytes()

    names = sorted(originals)
    return [name for name, done in zip(names, _at_once(same, names), strict=True) if not done]


def _at_once(work: Callable[[str], _T], names: Iterable[str]) -> list[_T]:
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(work, names))


def _taken(place: ObjectPath) -> FileExistsError:
    return FileExistsError(17, "something is in its place already", str(place))
