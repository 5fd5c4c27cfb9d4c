"""Leases of what lies on an object store: an object beside it, and a lock of this machine.

Decision 0184.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from headwater.leases.conditional_store import StoredObject
from headwater.leases.file_lease import is_locked, update_lease
from headwater.leases.holder import Holder, holder_of
from headwater.leases.store_lease import LIFETIME, StoreLease, lock_identity, store_lease
from headwater.runtime.cache import cache_root
from headwater.storage.atomic import refuse_without_conditions
from headwater.storage.object_path import ObjectPath


@contextmanager
def storage_lease(
    state_folder: ObjectPath, holder: str, *, wait: timedelta = timedelta(0)
) -> Iterator[StoreLease]:
    """Hold the lease of a pipeline on a store inside the block, as ``object_lease``; it is an object of the storage itself."""
    with object_lease(state_folder / "update.lease", holder, wait=wait) as lease:
        yield lease


@contextmanager
def object_lease(lease: ObjectPath, holder: str, *, wait: timedelta = timedelta(0)) -> Iterator[StoreLease]:
    """Hold a lease that is this object inside the block; arguments and errors as of ``store_lease``.

    A file of this machine is locked as well: the lease of a driver that was killed here is free at once, since only its
    death can have given us the lock. Before the first lease of all, the store has to show that it honours conditions.
    """
    with update_lease(lock_of_this_machine(lease).parent, holder, wait=wait) as local:
        lock = lock_identity(local.path)
        if not lease.is_file():
            # Whoever has the lock is the only one of its name.
            refuse_without_conditions(lease.parent, hashlib.sha256(repr(lock).encode()).hexdigest()[:16])
        who = Holder(holder, lock=lock)
        with store_lease(StoredObject(lease), who, wait=wait) as lease_on_store:
            yield lease_on_store


def lock_of_this_machine(lease: ObjectPath) -> Path:
    """The file that is locked beside a lease on a store."""
    # Two stores may have buckets of one name.
    name = hashlib.sha256(f"{lease.bucket.access.endpoint} {lease}".encode()).hexdigest()[:32]
    return cache_root() / "leases" / name / "update.lease"


def storage_lease_is_held(state_folder: ObjectPath) -> bool:
    """Whether somebody may hold the lease of a pipeline on a store."""
    lease = state_folder / "update.lease"
    seen = StoredObject(lease).read()
    if seen is None or seen.age >= LIFETIME:
        return False
    holder = holder_of(seen.text)
    return not holder.get("free") and not _has_died_here(lease, holder)


def _has_died_here(lease: ObjectPath, holder: Mapping[str, Any]) -> bool:
    """Whether a holder had the lock of this machine, which nobody has now."""
    if "lock" not in holder:
        return False
    lock = lock_of_this_machine(lease)
    return lock.exists() and holder["lock"] == list(lock_identity(lock)) and not is_locked(lock.parent)
