"""Moments of an update at which a kill has something to break, seen by what is on disk."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path

from tests.pipeline_case import PipelineCase

from headwater.checkpoints.layout import change_memory
from headwater.event_log.event import event_table
from headwater_spark.execution.sink_commits import latest_version

Moment = Callable[[], bool]
STREAMS = ("bronze", "doubled", "running", "checked")
MERGED = ("latest", "history")


def planned(case: PipelineCase, chance: random.Random) -> Moment:
    """A batch has its offsets and is not committed: before, while or after its rows are written."""
    folder = case.checkpoint(chance.choice((*STREAMS, *MERGED))).epoch_folder(0)
    start, pause = _last(folder / "offsets"), chance.uniform(0, 0.4)

    def met() -> bool:
        newest = _last(folder / "offsets")
        if newest > start and newest > _last(folder / "commits"):
            time.sleep(pause)
            return True
        return False

    return met


def written(case: PipelineCase, chance: random.Random) -> Moment:
    """A batch's rows are in the table, and Spark has not yet marked it as done."""
    name = chance.choice((*STREAMS, *MERGED))
    commits = case.checkpoint(name).epoch_folder(0) / "commits"
    seen = latest_version(case.table(name))

    def met() -> bool:
        nonlocal seen
        newest = latest_version(case.table(name))
        if newest == seen:
            return False
        seen = newest
        batch = _batch(case.table(name) / "_delta_log" / f"{newest:020d}.json")
        return batch is not None and batch > _last(commits)

    return met


def remembered(case: PipelineCase, chance: random.Random) -> Moment:
    """Changes are in the table beside their target, and not in the target yet."""
    name = chance.choice(MERGED)
    side = change_memory(case.project().state_folder, name) / "events"
    pause = chance.uniform(0, 0.3)
    before = latest_version(side)

    def met() -> bool:
        # Its first version is the empty table.
        if max(latest_version(side), 0) <= max(before, 0):
            return False
        time.sleep(pause)
        return True

    return met


def kept_out(case: PipelineCase, _chance: random.Random) -> Moment:
    """A batch's rows are in the quarantine, and those that passed are not yet in the table."""
    quarantine, table = case.table("checked_quarantine"), case.table("checked")
    start = latest_version(quarantine)

    def met() -> bool:
        newest, written = latest_version(quarantine), latest_version(table)
        if newest <= max(start, 0):
            return False
        kept = _batch(quarantine / "_delta_log" / f"{newest:020d}.json")
        done = _batch(table / "_delta_log" / f"{written:020d}.json") if written >= 0 else None
        return kept is not None and (done is None or kept > done)

    return met


def unrecorded(case: PipelineCase, chance: random.Random) -> Moment:
    """A batch is done, and its record is not in the event log yet (it is written once a second)."""
    commits = case.checkpoint(chance.choice(STREAMS)).epoch_folder(0) / "commits"
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


POINTS = (planned, kept_out, written, remembered, refreshing, unrecorded, any_time, recording)


def _last(folder: Path) -> int:
    return max((int(p.name) for p in folder.glob("[0-9]*") if p.name.isdigit()), default=-1)


def _batch(commit: Path) -> int | None:
    for line in commit.read_text(encoding="utf-8").splitlines():
        if line.startswith('{"txn"'):
            return int(json.loads(line)["txn"]["version"])
    return None
