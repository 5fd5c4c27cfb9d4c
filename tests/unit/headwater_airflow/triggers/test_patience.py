"""What is away for a moment is waited for; what stays wrong is raised."""

from __future__ import annotations

import asyncio

import pytest

from headwater.errors import HeadwaterError, InvalidSpec
from headwater.storage.conditions import StoreUnreachable
from headwater_airflow.triggers import patience
from headwater_airflow.triggers.patience import patiently


class Looks:
    """Fails so often, then answers."""

    def __init__(self, failures: int, error: Exception) -> None:
        self.failures, self.error, self.count = failures, error, 0

    def __call__(self) -> str:
        self.count += 1
        if self.count <= self.failures:
            raise self.error
        return "seen"


@pytest.mark.parametrize("error", [StoreUnreachable("Away."), OSError("stale"), RuntimeError("500")])
def test_what_passes_is_waited_out_and_said_once(error, caplog):
    """The same reason is one line of the log, however often it is met."""
    looks = Looks(4, error)
    assert asyncio.run(patiently(looks, 0.001)) == "seen"
    assert looks.count == 5
    assert len(caplog.records) == 1
    assert str(getattr(error, "what", error)) in caplog.text


@pytest.mark.parametrize(
    ("error", "seconds"),
    [(InvalidSpec("The manifest has no such table."), 600), (StoreUnreachable("Away."), 0.05)],
    ids=["another look would find the same", "away for too long"],
)
def test_what_stays_wrong_is_raised(error: HeadwaterError, seconds: float, monkeypatch: pytest.MonkeyPatch):
    """Nobody waits for what does not come."""
    monkeypatch.setattr(patience, "PATIENCE_SECONDS", seconds)
    with pytest.raises(type(error)):
        asyncio.run(asyncio.wait_for(patiently(Looks(10**6, error), 0.001), 5))


def test_pauses_grow_to_half_a_minute(monkeypatch: pytest.MonkeyPatch):
    """Who is away for long is not asked all the time, and who is back is seen soon."""
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(patience.asyncio, "sleep", sleep)
    asyncio.run(patiently(Looks(6, OSError("away")), 4.0))
    assert pauses == [4.0, 8.0, 16.0, 30.0, 30.0, 30.0]
