"""One update of a pipeline at a time.

A local storage is leased by a lock of the operating system (``file_lease``). Where machines share no file system with working
locks, ``store_lease`` adds a lease on an object store; ``storage_lease`` is that of a storage that lies on one.

Decision 0146.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from headwater.leases.file_lease import is_locked
from headwater.leases.storage_lease import storage_lease_is_held
from headwater.storage.object_path import ObjectPath
from headwater.storage.place import Place


class Lease(Protocol):
    """The right to write. ``token`` grows with each holder."""

    @property
    def token(self) -> int: ...  # noqa: D102

    def check(self) -> None:
        """Raise LeaseLost where another one may hold it."""


@dataclass(frozen=True)
class BesideUpdates:
    """A substitute for a lease where a task may run beside an update: Delta resolves conflicts between the two writers.

    Used by a backfill of a table whose stream goes on, and by a run that writes nothing.
    """

    token: int = 0

    def check(self) -> None:
        """Does nothing: there is no lease to lose."""


def is_held(state_folder: Place) -> bool:
    """Whether somebody has the pipeline's lease now. Nothing is written, and nobody who holds it notices."""
    return (
        storage_lease_is_held(state_folder)
        if isinstance(state_folder, ObjectPath)
        else is_locked(state_folder)
    )
