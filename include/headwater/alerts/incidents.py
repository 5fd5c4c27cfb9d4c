"""One incident from the first broken limit until it is met again, announced once at each end.

Decision 0102.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from headwater.files.atomic_files import write_atomically
from headwater.storage.place import Place

_log = logging.getLogger("headwater.alerts")


@dataclass(frozen=True)
class Breach:
    """A limit that is broken now. ``key`` stays the same while the same thing is broken; ``message`` has the numbers."""

    key: str
    message: str


@dataclass(frozen=True)
class Incident:
    """A breach since ``since`` (seconds since 1970); ``message`` is that of its beginning."""

    key: str
    message: str
    since: float


@dataclass(frozen=True)
class IncidentChanges:
    """What came up and what is over since the last look; ``ongoing`` has been announced before."""

    opened: tuple[Incident, ...] = ()
    resolved: tuple[Incident, ...] = ()
    ongoing: tuple[Incident, ...] = ()


@dataclass(frozen=True)
class IncidentBook:
    """The open incidents of one check, kept in a file: what is in it has been announced.

    Args:
        file: where they are kept.
        now: seconds since 1970.

    """

    file: Place
    now: Callable[[], float] = time.time

    def compare(self, breaches: Sequence[Breach]) -> IncidentChanges:
        """Compare what is broken now with what has been announced."""
        announced = {incident.key: incident for incident in self.open_incidents()}
        broken = {breach.key: breach for breach in breaches}
        moment = self.now()
        return IncidentChanges(
            tuple(
                Incident(key, breach.message, moment)
                for key, breach in broken.items()
                if key not in announced
            ),
            tuple(incident for key, incident in announced.items() if key not in broken),
            tuple(incident for key, incident in announced.items() if key in broken),
        )

    def record_announced(self, *, opened: Sequence[Incident] = (), resolved: Sequence[Incident] = ()) -> None:
        """Record, durably, what has been announced; the others come up again at the next look."""
        over = {incident.key for incident in resolved}
        still_open = [incident for incident in self.open_incidents() if incident.key not in over]
        text = json.dumps([asdict(incident) for incident in [*still_open, *opened]], indent=1)
        write_atomically(self.file, text + "\n")

    def open_incidents(self) -> list[Incident]:
        """The incidents that were announced as open and not yet as resolved; none where the file is damaged: they are announced again."""
        try:
            entries = json.loads(self.file.read_text(encoding="utf-8"))
            return [Incident(**entry) for entry in entries]
        except FileNotFoundError:
            return []
        except (ValueError, TypeError) as error:
            _log.warning("Open incidents are announced again, %s can't be read: %r", self.file, error)
            return []
