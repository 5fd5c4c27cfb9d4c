"""Threads for looks that block, of which each kind has a few of its own.

A look that waits for a dead broker or a slow store holds up neither the loop of the triggerer nor looks of another kind: sensors that wait
for one pipeline's broker do not keep back the tables of all others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Literal, TypeVar

# Of watchers of assets, of sensors, of those who follow an update.
Kind = Literal["watch", "condition", "update"]
THREADS = 16
_T = TypeVar("_T")


async def in_thread(kind: Kind, function: Callable[..., _T], *arguments: object) -> _T:
    """Call what blocks in one of the threads of its kind."""
    return await asyncio.get_running_loop().run_in_executor(_threads(kind), function, *arguments)


@cache
def _threads(kind: Kind) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, thread_name_prefix=f"headwater-{kind}")
