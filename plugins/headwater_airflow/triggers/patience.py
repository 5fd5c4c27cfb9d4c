"""Looks of those who follow an update: one that fails is repeated for a while.

A store or Airflow's API that is away for a moment is waited for by the driver of the update. The task of a table must not be red
meanwhile, and its event not be lost, though the update ends well.

Decision 0254.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import TypeVar

from headwater.errors import HeadwaterError
from headwater.event_log.redaction import quoted
from headwater_airflow.triggers.threads import in_thread

# Longer than a server takes to start again, or a table to be put back.
PATIENCE_SECONDS = 600.0
_LONGEST_PAUSE = 30.0
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


async def patiently(look: Callable[[], _T], pause: float) -> _T:
    """What a look gives that may block, and may fail for a while.

    Args:
        look: called in a thread, again and again until it does not fail.
        pause: in seconds, after the first failure; those after the next ones grow.

    Raises:
        HeadwaterError: at once, where another look would find the same.
        Exception: what the last look raised, where all have failed for PATIENCE_SECONDS.

    """
    began, reason = time.monotonic(), ""
    while True:
        try:
            return await in_thread("update", look)
        except Exception as error:
            hopeless = isinstance(error, HeadwaterError) and not error.transient
            if hopeless or time.monotonic() - began >= PATIENCE_SECONDS:
                raise
            if (words := quoted(error)) != reason:
                reason = words
                _log.warning("The update can't be looked at for now: %s", reason)
        await asyncio.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)
