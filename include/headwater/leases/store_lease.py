"""A lease on an object store: written conditionally, renewed while it is held, taken over only from a dead holder.

No clock is compared with another machine's. The store's own clock decides whether a holder is dead: it has not renewed for
``LIFETIME``, and does not renew while it is watched, either: the clock may have been set. A holder whose renewals fail gives up before that, by a monotonic clock of its own that keeps running
while the machine sleeps. ``MARGIN`` lies between the two.

Decision 0092.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from headwater.errors import LeaseLost, LeaseUnreachable
from headwater.leases.conditional_store import ConditionalStore
from headwater.leases.holder import Holder, holder_of, in_progress, log_wait, token_of
from headwater.storage.conditions import StoreRefused

LIFETIME = timedelta(seconds=60)
MARGIN = timedelta(seconds=15)
RENEWAL = timedelta(seconds=10)
# Longer than a holder that can reach the store leaves between two renewals.
WATCHED = timedelta(seconds=15)


def machine_seconds() -> float:
    """Seconds since the machine started, including sleep; setting the time of day does not change it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass
class StoreLease:
    """The right to write, for as long as it is renewed. ``token`` grows with each holder."""

    store: ConditionalStore
    holder: Holder
    tag: str
    renewed: float
    clock: Callable[[], float] = machine_seconds
    _taken: bool = False
    _renewals: int = 0
    _turn: threading.Lock = field(default_factory=threading.Lock)

    @property
    def token(self) -> int:
        """The fencing token."""
        return self.holder.token

    def check(self) -> None:
        """Raise LeaseLost where another one may hold it; sends no request."""
        if self._taken or self.clock() - self.renewed > (LIFETIME - MARGIN).total_seconds():
            raise LeaseLost(
                "The lease of this update could not be renewed in time, so another one may have it."
                if not self._taken
                else "The lease of this update was taken from it, or removed, while it ran.",
                where=self.store,
                remedy="Run the update again: it goes on from where this one stood. If it happens again, look for what kept the "
                "driver from the store: the network, a machine that sleeps, or one that is short of memory.",
            )

    def renew(self) -> None:
        """Renew the lease; raises LeaseUnreachable. A lost lease stays lost."""
        with self._turn:
            self._renew()

    def _renew(self) -> None:
        if self._taken:
            return
        requested_at = self.clock()
        # A store names an object by its content: a text that was there before would be no sign of life to who watches its tag.
        self._renewals += 1
        tag = self.store.write(self.holder.text(renewed=self._renewals), expected=self.tag)
        if tag is None:
            # The answer to a successful write may have been lost: then the object is ours.
            seen = self.store.read()
            if seen is None or not self.holder.wrote(seen.text):
                self._taken = True
                return
            tag = seen.tag
            requested_at = self.renewed
        # Counted from before the request: the store may have written it immediately.
        self.tag, self.renewed = tag, requested_at

    def release(self) -> None:
        """Release it for the next one; where the store can't be reached, that one waits until it has expired."""
        with self._turn, suppress(LeaseUnreachable, StoreRefused):
            if not self._taken and self._free(self.tag) is None:
                # The answer to a renewal, or to this very write, may have been lost: then the object is ours, and has another tag.
                seen = self.store.read()
                if seen is not None and self.holder.wrote(seen.text) and not holder_of(seen.text).get("free"):
                    self._free(seen.tag)
            self._taken = True

    def _free(self, tag: str) -> str | None:
        return self.store.write(self.holder.text(free=True), expected=tag)


@contextmanager
def store_lease(
    store: ConditionalStore,
    holder: Holder,
    *,
    wait: timedelta = timedelta(0),
    clock: Callable[[], float] = machine_seconds,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[StoreLease]:
    """Hold the lease inside the block, and renew it meanwhile.

    Args:
        store: where it lies.
        holder: who takes it; its token is set here.
        wait: how long to wait for another holder to end. One whose time is over is watched for some seconds in any case.
        clock: seconds that only grow.
        sleep: waits for so many of them.

    Raises:
        UpdateInProgress: where another one holds it that may be alive.
        LeaseUnreachable: the store can't be reached.
    """
    lease = _acquired(store, holder, clock() + wait.total_seconds(), clock, sleep)
    ended = threading.Event()
    renewing = threading.Thread(target=_keep, args=(lease, ended), name="lease-renewal", daemon=True)
    renewing.start()
    try:
        yield lease
    finally:
        ended.set()
        renewing.join()
        lease.release()


def _keep(lease: StoreLease, ended: threading.Event) -> None:
    while not ended.wait(RENEWAL.total_seconds()):
        # The next attempt may reach it; if none does in time, ``check`` raises.
        with suppress(LeaseUnreachable, StoreRefused):
            lease.renew()


def _acquired(
    store: ConditionalStore,
    holder: Holder,
    ends: float,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> StoreLease:
    watched, since, waits = None, 0.0, False
    while True:
        seen = store.read()
        recorded = holder_of(seen.text) if seen is not None else {}
        if seen is not None and seen.tag != watched:
            watched, since = seen.tag, clock()
        # The store's clock may have been set since the last renewal: then every lease looks old until its holder renews it, or new for
        # as long as the clock was set back.
        silent = seen is not None and seen.age >= LIFETIME
        watched_for = timedelta(seconds=clock() - since)
        is_dead = watched_for >= (WATCHED if silent else LIFETIME)
        if seen is None or is_free(recorded, holder) or is_dead:
            mine = holder.with_token(token_of(recorded) + 1)
            requested_at = clock()
            tag = store.write(mine.text(), expected=seen.tag if seen is not None else None)
            if tag is not None:
                return StoreLease(store, mine, tag, requested_at, clock)
            seen = store.read()
            if seen is not None and mine.wrote(seen.text):  # done, though the answer got lost
                return StoreLease(store, mine, seen.tag, requested_at, clock)
        elif silent:
            sleep(1.0)
        elif clock() >= ends:
            raise in_progress(seen.text, store, dead_in=LIFETIME - seen.age)
        else:
            left = max(0.0, ends - clock())
            if not waits:
                log_wait(seen.text, left)
            waits = True
            sleep(min(1.0, left))


def is_free(recorded: Mapping[str, Any], holder: Holder) -> bool:
    """Whether nobody holds it for certain: it was released, or its holder is known to be dead.

    It is known to be dead if it held a lock of this machine's kernel that now ``holder`` has: such a lock is released only
    when its process ends.
    """
    if recorded.get("free"):
        return True
    return holder.lock is not None and recorded.get("lock") == list(holder.lock)


def lock_identity(file: Path) -> tuple[str, int, int]:
    """The identity of a locked file, unique on this machine since it was started."""
    status = file.stat()
    boot = Path("/proc/sys/kernel/random/boot_id")
    return boot.read_text(encoding="utf-8").strip(), status.st_dev, status.st_ino
