"""Whether the driver of a continuous update still does something, as its event log shows."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from headwater.event_log.reader import events
from headwater.event_log.redaction import quoted
from headwater.graph.pipeline_project import PipelineProject

LOOK_SECONDS = "HEADWATER_HEALTH_SECONDS"
SILENCE_SECONDS = "HEADWATER_SILENCE_SECONDS"
_LOOK = 30.0
# A driver writes a record a minute, whatever its flows do; to start and to stop Spark takes some.
_SILENCE = 600.0
_SHOWN_EVERY = timedelta(minutes=5)
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Health:
    """The newest record of an update. ``seconds``: its age, or how long nothing has come at all."""

    seconds: float
    message: str

    def is_silent(self, limit: float) -> bool:
        """Whether the driver has hung, though its process is there."""
        return self.seconds > limit

    def __str__(self) -> str:
        return f"Last sign of life {self.seconds:.0f} s ago: {self.message}"


def health(project: PipelineProject, request: str, since: datetime, now: datetime) -> Health:
    """How a request's update does. ``since``: when its driver was started."""
    newest = events(project.state_folder, request_id=request, since=since, limit=1)
    if not newest:
        return Health((now - since).total_seconds(), "none yet")
    at = newest[-1]["timestamp"]
    age = now - (at if at.tzinfo else at.replace(tzinfo=UTC))
    return Health(max(0.0, age.total_seconds()), str(newest[-1]["message"]).partition("\n")[0])


@contextmanager
def watched(project: PipelineProject, request: str, end: Callable[[], None]) -> Iterator[None]:
    """Look at the update's records while the block runs; ``end`` is called once where they have stopped coming."""
    over = threading.Event()
    watch = threading.Thread(target=_watch, args=(project, request, end, over), name="health", daemon=True)
    watch.start()
    try:
        yield
    finally:
        over.set()
        watch.join(timeout=5)


def _watch(project: PipelineProject, request: str, end: Callable[[], None], over: threading.Event) -> None:
    since = datetime.now(UTC)
    shown = since - _SHOWN_EVERY
    limit, look = _seconds(SILENCE_SECONDS, _SILENCE), _seconds(LOOK_SECONDS, _LOOK)
    while not over.wait(look):
        now = datetime.now(UTC)
        try:
            state = health(project, request, since, now)
        except (
            Exception
        ) as error:  # the log may be unreadable for a moment; the driver's own end is seen in any case
            _log.warning("The event log can't be read for now: %s", quoted(error))
            continue
        if now - shown >= _SHOWN_EVERY:
            shown = now
            _log.info("%s", state)
        if state.is_silent(limit):
            _log.error("The driver is ended: nothing has come from it for %.0f s. %s", limit, state)
            end()
            return


def _seconds(variable: str, default: float) -> float:
    """A positive number of seconds from the environment; ``default`` where it is none."""
    try:
        given = float(os.environ.get(variable, default))
    except ValueError:
        return default
    return given if given > 0 else default
