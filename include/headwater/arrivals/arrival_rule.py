from __future__ import annotations

from dataclasses import dataclass

from headwater.arrivals.unread import Unread
from headwater.errors import UsageError

LEAST = ("files", "records", "versions")


@dataclass(frozen=True)
class ArrivalRule:
    """When unread data is worth a run.

    Attributes:
        quiet_seconds: nothing more has arrived for so long.
        files, records, versions: so many files of folders, messages of topics or commits of tables have to be there;
            one of the three is enough.
        wait_seconds: data waits no longer than this, few as it may be and however busy its source; None: as long as it takes.

    """

    quiet_seconds: float = 0.0
    files: int = 1
    records: int = 1
    versions: int = 1
    wait_seconds: float | None = None

    @classmethod
    def checked(
        cls,
        quiet_seconds: float = 0.0,
        files: int = 1,
        records: int = 1,
        versions: int = 1,
        wait_seconds: float | None = None,
    ) -> ArrivalRule:
        """The rule of these values; raises UsageError if one of them has no meaning."""
        if min(files, records, versions) < 1:
            raise UsageError("files, records and versions must be 1 or more.")
        if not 0 <= quiet_seconds < float("inf"):
            raise UsageError("quiet_seconds must be 0 or more.")
        if wait_seconds is not None and not quiet_seconds <= wait_seconds < float("inf"):
            raise UsageError("wait_seconds must not be less than quiet_seconds.")
        return cls(float(quiet_seconds), int(files), int(records), int(versions), wait_seconds)

    def is_met(self, unread: Unread, *, quiet: float, waited: float) -> bool:
        """Whether it is time: ``quiet`` seconds since the last arrival, ``waited`` since the first. What can't be counted is enough."""
        if self.wait_seconds is not None and waited >= self.wait_seconds:
            return True
        if quiet < self.quiet_seconds:
            return False
        amounts = unread.amounts()
        return any(
            measure not in LEAST or amount is None or amount >= getattr(self, measure)
            for measure, amount in amounts.items()
        )
