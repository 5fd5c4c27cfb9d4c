"""Watches the sources of a pipeline, and says once that there is something to read.

Decision 0168.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from headwater.arrivals.arrival_rule import ArrivalRule
from headwater.arrivals.unread import Unread, UnreadSource, unread
from headwater.delta_log.commits import newest_version
from headwater.errors import SourceUnreachable
from headwater.event_log.event import event_table
from headwater.event_log.reader import latest_update
from headwater.files.atomic_files import write_atomically
from headwater.graph.manifest import Manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater.leases.lease import is_held
from headwater.storage.place import Place

NO_MANIFEST = "which tables it has is known after its first update"
# An update that was asked for begins within this time, else it is asked for again; each time twice as long.
AGAIN_SECONDS = 600.0
_LONGEST_AGAIN = 6 * 3600.0


@dataclass(frozen=True)
class Arrival:
    """Unread data worth a run."""

    pipeline: str
    unread: Unread
    after_update: str | None = None
    at: float = 0.0
    times: int = 1

    def as_dict(self) -> dict[str, Any]:
        """The arrival as JSON values, without secrets: what the run shows of its cause."""
        return {
            "pipeline": self.pipeline,
            "sources": [
                {name: value for name, value in asdict(source).items() if name != "mark"}
                for source in self.unread.sources
            ],
        }


@dataclass(frozen=True)
class _Announced:
    marks: Mapping[str, str]
    after_update: str | None
    at: float
    times: int
    watcher: int | None = None


@dataclass
class ArrivalWatch:
    """One watch over the sources of one pipeline. An arrival comes again until ``acknowledge`` confirms that it was delivered.

    Whether data is unread is read from the pipeline's checkpoints, each time. Only what was announced last is kept, in storage,
    so that neither a restart nor an update that fails announces it a second time.

    Args:
        pipeline: how it is called.
        read: gives the pipeline and its manifest, None before it has one.
        rule: when data is worth a run.
        now: seconds since 1970.
        look_at: finds what is unread.
        watcher: which watcher of Airflow's it is; a DAG that was paused has another one afterwards. None where that is not known.

    """

    pipeline: str
    read: Callable[[], tuple[PipelineProject, Manifest | None]]
    rule: ArrivalRule
    now: Callable[[], float] = time.time
    look_at: Callable[[PipelineProject, Manifest], Unread] = unread
    watcher: int | None = None
    _seen: Mapping[str, str] = field(default_factory=dict)
    _changed: float = 0.0
    _first: float = 0.0
    _latest: tuple[int | None, Any] | None = None

    def look(self) -> Arrival | None:
        """What to announce now, if there is something.

        Raises:
            SourceUnreachable: nothing is known to be unread, and sources could not be read.
            HeadwaterError: the pipeline itself can't be read.

        """
        project, manifest = self.read()
        here = self.look_at(project, manifest) if manifest is not None else _first_update()
        if not here.sources:
            self._seen = {}
            if here.unknown:
                raise SourceUnreachable("; ".join(here.unknown))
            return None
        self._note(here)
        now = self.now()
        waited = max(now - self._first, here.seconds)
        if not self.rule.is_met(here, quiet=now - self._changed, waited=waited):
            return None
        return self._unless_announced(project, here)

    def acknowledge(self, arrival: Arrival) -> None:
        """Remember, durably, that this was delivered."""
        project, _ = self.read()
        record = _Announced(
            arrival.unread.marks, arrival.after_update, arrival.at, arrival.times, self.watcher
        )
        write_atomically(self.memory(project), json.dumps(asdict(record)) + "\n")

    def memory(self, project: PipelineProject) -> Place:
        """The file with what was announced last; another rule is another watch."""
        digest = hashlib.sha256(repr(self.rule).encode()).hexdigest()[:12]
        return project.state_folder / "arrivals" / f"{digest}.json"

    def _note(self, here: Unread) -> None:
        if here.marks != self._seen:
            self._changed = self.now()
            if not self._seen:
                self._first = self._changed
            self._seen = here.marks

    def _unless_announced(self, project: PipelineProject, here: Unread) -> Arrival | None:
        latest = self._latest_update(project.state_folder)
        if latest is not None and latest.ended is None and is_held(project.state_folder):
            return None  # an update reads it now; what it leaves is seen when it has ended
        update_id = latest.update_id if latest is not None else None
        arrival = Arrival(self.pipeline, here, update_id, self.now())
        before = _announced(self.memory(project))
        if before is None:
            return arrival
        if before.after_update != update_id:
            # An update has run since: what it left behind, and that has not changed, it could not read.
            news = any(before.marks.get(key) != mark for key, mark in here.marks.items())
            return arrival if news else None
        # The update is still to come, and will read what has come meanwhile, too. It may have been lost: a DAG is paused.
        if None not in (self.watcher, before.watcher) and self.watcher != before.watcher:
            return arrival
        wait = min(AGAIN_SECONDS * 2 ** (before.times - 1), _LONGEST_AGAIN)
        if self.now() - before.at < wait:
            return None
        return Arrival(self.pipeline, here, update_id, self.now(), before.times + 1)

    def _latest_update(self, state_folder: Place) -> Any:
        version = newest_version(event_table(state_folder))
        if self._latest is None or self._latest[0] != version:
            self._latest = (version, latest_update(state_folder))
        return self._latest[1]


def _first_update() -> Unread:
    return Unread((UnreadSource("", "", "first", None, NO_MANIFEST),))


def _announced(file: Place) -> _Announced | None:
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        return _Announced(
            {str(key): str(mark) for key, mark in record["marks"].items()},
            record["after_update"],
            float(record["at"]),
            max(1, min(int(record["times"]), 20)),
            record.get("watcher"),
        )
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None  # damaged: it is announced once more
