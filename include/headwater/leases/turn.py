"""Waiting for a lease before anything is taken that its holder may lack: a session of Spark has executors."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

from headwater.leases.holder import log_wait
from headwater.leases.lease import is_held
from headwater.storage.place import Place


def wait_for_turn(
    state_folder: Place,
    wait: timedelta,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> timedelta:
    """Wait until nobody has a pipeline's lease, and take nothing: whoever asks for it next may still be second.

    Returns:
        What is left of ``wait``; none where somebody has it to the end.

    Raises:
        LeaseUnreachable, StoreRefused: the store does not say.
    """
    ends = clock() + wait.total_seconds()
    waits = False
    while is_held(state_folder) and (left := ends - clock()) > 0:
        if not waits:
            log_wait(_lease_text(state_folder), left)
        waits = True
        sleep(min(1.0, left))
    return timedelta(seconds=max(0.0, ends - clock()))


def _lease_text(state_folder: Place) -> str:
    try:
        return (state_folder / "update.lease").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
