"""``DeltaTable.forName`` in functions of sinks: it uses the catalog, which does not know the pipeline's tables."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from delta.tables import DeltaTable

from headwater.storage.place import Place

# Gives the folder of a table by name, None where there is none.
FindTable = Callable[[str], Place | None]
_FIND: ContextVar[FindTable | None] = ContextVar("headwater_find_table", default=None)


@contextmanager
def tables_by_name(find: FindTable) -> Iterator[None]:
    """Let ``DeltaTable.forName`` find the pipeline's tables first inside the block, in this thread."""
    _install()
    token = _FIND.set(find)
    try:
        yield
    finally:
        _FIND.reset(token)


def _install() -> None:
    original = DeltaTable.forName
    if hasattr(original, "headwater_names"):
        return

    @functools.wraps(original)
    def for_name(session: Any, name: str) -> DeltaTable:
        find = _FIND.get()
        path = find(name) if find is not None else None
        return DeltaTable.forPath(session, str(path)) if path is not None else original(session, name)

    for_name.headwater_names = True  # type: ignore[attr-defined]
    DeltaTable.forName = staticmethod(for_name)  # type: ignore[method-assign, assignment]
