"""How a start of a flow looked for files, as Lakeflow's event log tells it of Auto Loader."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from headwater.event_log.details import operation_progress
from headwater.event_log.redaction import public_address

LISTING, BACKFILL = "AUTO_LOADER_LISTING", "AUTO_LOADER_BACKFILL"


@dataclass(frozen=True)
class FolderListing:
    """One listing of a read's whole folder.

    ``files``: how many it has, read before or not. ``interval``: the read's ``cloudFiles.backfillInterval``.
    """

    path: str
    files: int
    milliseconds: int
    interval: timedelta | None = None

    def longer(self, milliseconds: int) -> FolderListing:
        """The same with the time that Spark took to list as well."""
        return replace(self, milliseconds=self.milliseconds + milliseconds)

    def is_backfill(self, last: datetime | None, now: datetime) -> bool:
        """Whether it is the look for files that were missed, which is due once per interval; ``last``: when the last one was."""
        return self.interval is not None and (last is None or now - last >= self.interval)

    def details(self, kind: str) -> dict[str, Any]:
        """Details of its ``operation_progress`` event."""
        counted = {"source_path": public_address(self.path), "num_files_listed": self.files}
        return operation_progress(kind, "COMPLETED", self.milliseconds, auto_loader_details=counted)
