"""A lease on an object store: written only where nobody else has, renewed while it is held, taken only from the dead.

No clock is compared with another machine's. Whether a holder is dead tells the store, by its own clock: it was not renewed for
``LIFETIME``. A holder whose renewals fail gives up before that, by a clock of its own that no one can set and that goes on
while the machine sleeps. Between the two lies ``MARGIN``.

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
from headwater.leases.conditional_store import ConditionalStore, StoredText
from headwater.leases.lease import Holder, holder_of, in_progress

LIFETIME = timedelta(seconds=60)
MARGIN = timedelta(seconds=15)
RENEWAL = timedelta(seconds=10)


def machine_seconds() -> float:
    """Seconds since the machine started, those asleep included; setting the time of day does not change it."""
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
    _turn: threading.Lock = field(default_factory=threading.Lock)

    @property
    def token(self) -> int:
        """The fencing token."""
        return self.holder.token

    def check(self) -> None:
        """Raise LeaseLost where another one may hold it; asks nobody."""
        if self._taken or self.clock() - self.renewed > (LIFETIME - MARGIN).total_seconds():
            raise LeaseLost(
                "The lease of this update could not be renewed in time, so another one may have it."
                if not self._taken
                else "The lease of this update was taken from it, or removed, while it ran.",
                where=self.store,
                remedy="Run the update again: it goes on from where this one stood. If it comes again, look for what kept the "
                "driver from the store: the network, a machine that sleeps, or one that is short of memory.",
            )

    def renew(self) -> None:
        """Say that the holder lives; raises LeaseUnreachable. What is lost stays lost."""
        with self._turn:
            self._renew()

    def _renew(self) -> None:
        if self._taken:
            return
        asked = self.clock()
        tag = self.store.write(self.holder.text(renewed=True), expected=self.tag)
        if tag is None:
            # An answer may have got lost after its request was done: then what lies there is ours.
            seen = self.store.read()
            if seen is None or not self.holder.wrote(seen.text):
                self._taken = True
                return
            tag = seen.tag
            asked = self.renewed
        # Counted from before the request: the store may have written it at once.
        self.tag, self.renewed = tag, asked

    def release(self) -> None:
        """Leave it to the next one; who can't be told waits until it has expired."""
        with self._turn, suppress(LeaseUnreachable):
            if not self._taken:
                self.store.write(self.holder.text(free=True), expected=self.tag)
            self._taken = True


@contextmanager
def store_lease(
    store: ConditionalStore,
    holder: Holder,
    *,
    wait: timedelta = timedelta(0),
    clock: Callable[[], float] = machine_seconds,
) -> Iterator[StoreLease]:
    """Hold the lease inside the block, and renew it meanwhile.

    Args:
        store: where it lies.
        holder: who takes it; its token is set here.
        wait: how long to wait for another holder to end.
        clock: seconds that only grow.

    Raises:
        UpdateInProgress: where another one holds it, and may be alive.
        LeaseUnreachable: the store can't be asked.
    """
    lease = _acquired(store, holder, clock() + wait.total_seconds(), clock)
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
        # The next try may reach it; if none does in time, ``check`` says so.
        with suppress(LeaseUnreachable):
            lease.renew()


def _acquired(store: ConditionalStore, holder: Holder, ends: float, clock: Callable[[], float]) -> StoreLease:
    while True:
        seen = store.read()
        told = holder_of(seen.text) if seen is not None else {}
        if seen is None or is_free(seen, told, holder):
            mine = holder.with_token(int(told.get("token") or 0) + 1)
            asked = clock()
            tag = store.write(mine.text(), expected=seen.tag if seen is not None else None)
            if tag is not None:
                return StoreLease(store, mine, tag, asked, clock)
            seen = store.read()
            if seen is not None and mine.wrote(seen.text):  # done, though the answer got lost
                return StoreLease(store, mine, seen.tag, asked, clock)
        elif clock() >= ends:
            raise in_progress(seen.text, store, dead_in=LIFETIME - seen.age)
        else:
            time.sleep(min(1.0, max(0.0, ends - clock())))


def is_free(seen: StoredText, told: Mapping[str, Any], holder: Holder) -> bool:
    """Whether nobody holds it: it was given back, or its holder is dead for certain.

    It is where the store has not heard of it for ``LIFETIME``. And where it held a lock of this machine's kernel that now
    ``holder`` has: such a lock ends with its process only.
    """
    if told.get("free") or seen.age >= LIFETIME:
        return True
    return holder.lock is not None and told.get("lock") == list(holder.lock)


def lock_identity(file: Path) -> tuple[str, int, int]:
    """What tells a locked file from every other one that this machine's kernel knows, since it was started."""
    found = file.stat()
    boot = Path("/proc/sys/kernel/random/boot_id")
    return boot.read_text(encoding="utf-8").strip(), found.st_dev, found.st_ino
