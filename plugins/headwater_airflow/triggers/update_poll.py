"""One look at a running update for all tasks that follow it in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from headwater_airflow.following.dataset_verdict import UpdateOutcome
from headwater_airflow.triggers.patience import patiently

# Airflow is asked for the state of a task more rarely than the event log is looked at.
_LOOKS_PER_QUESTION = 5
_polls: dict[Hashable, UpdatePoll] = {}


@dataclass
class UpdatePoll:
    """Looks at an update, and wakes those who follow it when its task or its log has moved on.

    Args:
        outcome: how far its task is; may block.
        log_version: the newest version of the event log; may block.
        seconds: between two looks.

    """

    outcome: Callable[[], UpdateOutcome]
    log_version: Callable[[], int]
    seconds: float
    followers: int = 0
    _seen: tuple[UpdateOutcome, int] | None = None
    _moved: asyncio.Event = field(default_factory=asyncio.Event)
    _task: asyncio.Task[None] | None = None

    async def outcomes(self) -> AsyncIterator[UpdateOutcome]:
        """How far the update is: at once, and again whenever there is something new in its log or its task has ended."""
        if self._task is None:
            self._task = asyncio.create_task(self._look())
        known = None
        while True:
            while self._seen is None or self._seen == known:
                if self._task.done():
                    self._task.result()  # raises what ended it
                await self._moved.wait()
            known = self._seen
            yield known[0]

    def end(self) -> None:
        """Stop looking."""
        if self._task is not None:
            self._task.cancel()

    async def _look(self) -> None:
        looks, outcome = 0, UpdateOutcome.UNFINISHED
        try:
            while True:
                if looks % _LOOKS_PER_QUESTION == 0:
                    outcome = await patiently(self.outcome, self.seconds)
                # After the outcome: what an update that has ended has written is then all there.
                seen = (outcome, await patiently(self.log_version, self.seconds))
                if seen != self._seen:
                    self._seen = seen
                    self._wake()
                looks += 1
                await asyncio.sleep(self.seconds)
        finally:
            # Once done, the task has its error for all who follow.
            asyncio.get_running_loop().call_soon(self._wake)

    def _wake(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()


@asynccontextmanager
async def shared_poll(
    update: Hashable, outcome: Callable[[], UpdateOutcome], log_version: Callable[[], int], seconds: float
) -> AsyncIterator[UpdatePoll]:
    """The poll of an update, which the first who follows starts and the last one ends.

    Args:
        update: what tells it from others; all who give the same must mean the same by the rest.
        outcome, log_version, seconds: as of UpdatePoll.

    """
    key = (asyncio.get_running_loop(), update, seconds)
    poll = _polls.get(key)
    if poll is None:
        poll = _polls[key] = UpdatePoll(outcome, log_version, seconds)
    poll.followers += 1
    try:
        yield poll
    finally:
        poll.followers -= 1
        if poll.followers == 0:
            poll.end()
            if _polls.get(key) is poll:
                del _polls[key]
