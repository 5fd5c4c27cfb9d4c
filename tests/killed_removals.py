"""Folders whose removal is killed between two files, or between two folders."""

from __future__ import annotations

import itertools


class Killed(BaseException):
    """Nothing catches it."""


def killed_after(removals: int, *, deepest_first: bool = False):
    """``shutil.rmtree`` of a disk that hands out the newest files first, or the deepest, in a process that dies after so many of them."""
    count = itertools.count()

    def remove(folder, **_):
        paths = sorted(folder.rglob("*"), reverse=True)
        if deepest_first:
            paths.sort(key=lambda path: -len(path.parts))
        for path in [*paths, folder]:
            if next(count) >= removals:
                raise Killed
            if path.is_dir():
                path.rmdir()
            else:
                path.unlink()

    return remove


def killed_at_tree(number: int, remove_tree):
    """``remove_tree`` in a process that dies before the tree with this number, from 0."""
    count = itertools.count()

    def remove(folder, *, check):
        if next(count) == number:
            raise Killed
        remove_tree(folder, check=check)

    return remove
