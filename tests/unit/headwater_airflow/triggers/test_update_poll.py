"""All tasks that follow one update share one look at it."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from headwater_airflow.following.dataset_verdict import UpdateOutcome
from headwater_airflow.triggers import update_poll
from headwater_airflow.triggers.update_poll import shared_poll

FOLLOWERS = 50


class Update:
    """An update whose log grows, and whose task ends, when the test says so."""

    def __init__(self) -> None:
        self.version, self.state = 0, UpdateOutcome.UNFINISHED
        self.calls: Counter[str] = Counter()
        self.error: Exception | None = None

    def outcome(self):
        self.calls["outcome"] += 1
        if self.error is not None:
            raise self.error
        return self.state

    def log_version(self):
        self.calls["version"] += 1
        return self.version

    async def follow(self, looks=None):
        """What one follower sees until the end of the update, or so many times."""
        seen = []
        async with shared_poll("update", self.outcome, self.log_version, 0.02) as poll:
            async for outcome in poll.outcomes():
                seen.append((outcome, self.version))
                if outcome is not UpdateOutcome.UNFINISHED or len(seen) == looks:
                    return seen
        return seen


def test_fifty_followers_cost_as_much_as_one():
    """Each sees every state once and the end; the log is listed and Airflow asked once a look, not once a look and follower."""

    async def run(update):
        tasks = [asyncio.create_task(update.follow()) for _ in range(FOLLOWERS)]
        await asyncio.sleep(0.2)
        update.version = 1
        await asyncio.sleep(0.2)
        late = asyncio.create_task(update.follow())
        await asyncio.sleep(0.05)
        update.state = next(state for state in UpdateOutcome if state is not UpdateOutcome.UNFINISHED)
        return await asyncio.gather(*tasks), await late

    update = Update()
    followed, late = asyncio.run(run(update))
    assert [len(seen) for seen in followed] == [3] * FOLLOWERS
    assert [version for _, version in followed[0]] == [0, 1, 1]
    assert late == followed[0][1:]
    assert update.calls["version"] < FOLLOWERS
    assert update.calls["outcome"] <= update.calls["version"] // 5 + 1
    assert update_poll._polls == {}


def test_a_failed_question_reaches_all_and_the_next_follower_starts_anew(monkeypatch):
    """Airflow does not answer for too long: every follower has the error, and nothing of the poll is left."""
    monkeypatch.setattr("headwater_airflow.triggers.patience.PATIENCE_SECONDS", 0)

    async def run(update):
        tasks = [asyncio.create_task(update.follow()) for _ in range(3)]
        await asyncio.sleep(0.1)
        update.error = OSError("no answer")
        return await asyncio.gather(*tasks, return_exceptions=True)

    update = Update()
    assert [str(error) for error in asyncio.run(run(update))] == ["no answer"] * 3
    update.error = None
    assert asyncio.run(update.follow(looks=1)) == [(UpdateOutcome.UNFINISHED, 0)]
    assert update_poll._polls == {}


@pytest.mark.parametrize("leaves", [0, 1])
def test_who_leaves_does_not_end_it_for_the_others(leaves):
    """A task that is cancelled, also the first, takes nothing along."""

    async def run(update):
        tasks = [asyncio.create_task(update.follow(looks=2)) for _ in range(2)]
        await asyncio.sleep(0.1)
        tasks[leaves].cancel()
        await asyncio.sleep(0.05)
        update.version = 1
        return await tasks[1 - leaves]

    assert asyncio.run(run(Update())) == [(UpdateOutcome.UNFINISHED, 0), (UpdateOutcome.UNFINISHED, 1)]
