"""Moments of an update at which a kill has something to break, seen by what is on disk.

Decision 0094.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.pipeline_case import PipelineCase

from headwater.delta_log.table_history import head_version
from headwater.event_log.event import event_table
from headwater.storage.atomic import read_tagged
from headwater.storage.place import Place

Met = Callable[[Path], bool]
# Parts of the graph, each with what it reads: a driver that updates less is sooner where something can break.
_PARTS = (
    ("bronze", "judged"),
    ("bronze", "running", "judged"),
    ("bronze", "doubled", "standings"),
    ("bronze", "doubled", "latest", "history"),
    ("bronze", "doubled", "standings", "followed"),
)


@dataclass(frozen=True)
class Moment:
    """When to kill: ``met`` is asked with the driver's log. ``tables``: what it updates, all where empty."""

    name: str
    tables: tuple[str, ...]
    met: Met

    @property
    def arguments(self) -> tuple[str, ...]:
        """What the driver is told."""
        return (f"--tables={','.join(self.tables)}",) if self.tables else ()

    def __str__(self) -> str:
        return f"{self.name} of {','.join(self.tables) or 'all'}"


Point = Callable[[PipelineCase, random.Random], Moment]


def unrecorded(case: PipelineCase, chance: random.Random) -> Moment:
    """A batch is done, and its record is not in the event log yet (it is written once a second)."""
    tables = chance.choice((("bronze",), ("bronze", "doubled"), ("bronze", "running")))
    commits = case.checkpoint(tables[-1]).live_folder() / "commits"
    wanted, pause = _last(commits) + 1, chance.uniform(0, 0.5)
    return Moment("unrecorded", tables, lambda _: _last(commits) >= wanted and _paused(pause))


def refreshing(case: PipelineCase, chance: random.Random) -> Moment:
    """A materialized view is being recomputed."""
    pause = chance.uniform(0, 0.6)
    checkpoint = case.checkpoint("standings")
    # A killed driver may have left its state as it is while a refresh runs.
    left = _changed(checkpoint.state_file)

    def met(_: Path) -> bool:
        if _changed(checkpoint.state_file) == left:
            return False
        state = checkpoint.read_state()
        return state is not None and not state.completed and _paused(pause)

    return Moment("refreshing", ("bronze", "doubled", "standings"), met)


def recording(case: PipelineCase, chance: random.Random) -> Moment:
    """The event log has just been appended to."""
    table = event_table(case.project().state_folder)
    wanted = head_version(table) + chance.randint(1, 3)
    return Moment("recording", _part(chance), lambda _: head_version(table) >= wanted)


def any_time(_case: PipelineCase, chance: random.Random) -> Moment:
    """Some of the flows are done, and others are under way: however fast the machine is."""
    tables = _part(chance)
    lines, pause = chance.randrange(len(tables) or 7), chance.uniform(0, 2.5)

    def met(log: Path) -> bool:
        return log.read_text(errors="replace").count("  COMPLETED  ") >= lines and _paused(pause)

    return Moment("any_time", tables, met)


def begun(case: PipelineCase, chance: random.Random) -> Moment:
    """Some seconds after the update took the lease: its first flows start, or their first batches run."""
    lease, pause = case.project().state_folder / "update.lease", chance.uniform(0, 8)
    left = _changed(lease)
    return Moment("begun", _part(chance), lambda _: _changed(lease) != left and _paused(pause))


def starting(_case: PipelineCase, chance: random.Random) -> Moment:
    """Some seconds after the command was typed: while Spark starts, mostly."""
    moment = time.monotonic() + chance.uniform(0.5, 12)
    return Moment("starting", (), lambda _: time.monotonic() >= moment)


# Early moments come soon, and so can be tried more often.
POINTS: tuple[Point, ...] = (refreshing, unrecorded, any_time, recording, begun, begun, begun)


def _part(chance: random.Random) -> tuple[str, ...]:
    """All tables once in four times: only then all flows are under way side by side."""
    return () if chance.random() < 0.25 else chance.choice(_PARTS)


def _changed(file: Place) -> object:
    """Something that is another one after each change of a file."""
    if isinstance(file, Path):
        return file.stat().st_mtime_ns if file.exists() else None
    return read_tagged(file)


def _paused(seconds: float) -> bool:
    time.sleep(seconds)
    return True


def _last(folder: Place) -> int:
    return max((int(p.name) for p in folder.glob("[0-9]*") if p.name.isdigit()), default=-1)
