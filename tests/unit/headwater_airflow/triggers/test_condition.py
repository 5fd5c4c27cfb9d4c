"""A trigger looks until its condition is met, or can never be."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from headwater.errors import InvalidSpec
from headwater.storage.conditions import StoreUnreachable
from headwater_airflow.conditions.condition import Condition, Sighting
from headwater_airflow.triggers import condition as module
from headwater_airflow.triggers.condition import ConditionTrigger

LOOKS: list[Any] = []


@dataclass(frozen=True)
class Looks(Condition):
    """Gives the next of ``LOOKS``."""

    table: str

    def look(self) -> Sighting:
        answer = LOOKS.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]


def fired(monkeypatch: pytest.MonkeyPatch, *looks: Any) -> list[dict[str, Any]]:
    """The events of a trigger that was stored and is started again."""
    monkeypatch.setitem(module._KINDS, "Looks", Looks)
    LOOKS[:] = looks
    _, arguments = ConditionTrigger.of(Looks("shop.orders"), 0.001).serialize()
    assert arguments == {"kind": "Looks", "arguments": {"table": "shop.orders"}, "poll_seconds": 0.001}

    async def run() -> list[dict[str, Any]]:
        return [event.payload async for event in ConditionTrigger(**arguments).run()]

    return asyncio.run(asyncio.wait_for(run(), 20))


NOT_YET, MET = Sighting(met=False, summary="Not yet."), Sighting(met=True, summary="", payload={"version": 3})


def test_it_fires_once_when_it_is_met(monkeypatch: pytest.MonkeyPatch):
    """What is not there yet, or can't be looked at now, is looked at again."""
    assert fired(monkeypatch, NOT_YET, NOT_YET, StoreUnreachable("Away."), OSError("stale"), MET) == [
        {"version": 3}
    ]
    assert LOOKS == []


def test_waiting_in_vain_ends_with_the_reason(monkeypatch: pytest.MonkeyPatch):
    """An error that another look would find again is the event."""
    (payload,) = fired(monkeypatch, NOT_YET, InvalidSpec("There is no such table."), MET)
    assert "There is no such table." in payload["error"]
    assert LOOKS == [MET]
