"""Moments of an update at which a kill has something to break, seen by what is on disk."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

from tests.pipeline_case import PipelineCase

from headwater.event_log.event import event_table
from headwater_spark.execution.sink_commits import latest_version

Moment = Callable[[], bool]
STREAMS = ("bronze", "doubled", "running")


def unrecorded(case: PipelineCase, chance: random.Random) -> Moment:
    """A batch is done, and its record is not in the event log yet (it is written once a second)."""
    commits = case.checkpoint(chance.choice(STREAMS)).live_folder() / "commits"
    wanted = _last(commits) + chance.randint(1, 2)
    return lambda: _last(commits) >= wanted


def refreshing(case: PipelineCase, chance: random.Random) -> Moment:
    """A materialized view is being recomputed."""
    pause = chance.uniform(0, 0.6)

    def met() -> bool:
        state = case.checkpoint("standings").read_state()
        if state is None or state.completed:
            return False
        time.sleep(pause)
        return True

    return met


def recording(case: PipelineCase, chance: random.Random) -> Moment:
    """The event log has just been appended to."""
    table = event_table(case.project().state_folder)
    wanted = latest_version(table) + chance.randint(1, 4)
    return lambda: latest_version(table) >= wanted


def any_time(_case: PipelineCase, chance: random.Random) -> Moment:
    """Some seconds after the start, the start of Spark included."""
    moment = time.monotonic() + chance.uniform(0.5, 12)
    return lambda: time.monotonic() >= moment


POINTS = (refreshing, unrecorded, any_time, recording)


def _last(folder: Path) -> int:
    return max((int(p.name) for p in folder.glob("[0-9]*") if p.name.isdigit()), default=-1)
