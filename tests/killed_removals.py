"""Folders whose removal is killed between two files."""

from __future__ import annotations

import itertools


class Killed(BaseException):
    """Nothing catches it."""


def killed_after(removals: int):
    """``shutil.rmtree`` of a disk that hands out the newest files first, in a process that dies after so many of them."""
    count = itertools.count()

    def remove(folder, **_):
        for path in [*sorted(folder.rglob("*"), reverse=True), folder]:
            if next(count) >= removals:
                raise Killed
            if path.is_dir():
                path.rmdir()
            else:
                path.unlink()

    return remove
