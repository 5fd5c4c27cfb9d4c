"""Looks of one kind do not wait for those of another."""

from __future__ import annotations

import asyncio
import threading

from headwater_airflow.conditions.condition import Sighting
from headwater_airflow.conditions.table_version import TableVersionCondition
from headwater_airflow.triggers.condition import ConditionTrigger
from headwater_airflow.triggers.patience import patiently
from headwater_airflow.triggers.threads import THREADS

MANY = 60


def test_sensors_that_wait_for_a_dead_broker_hold_up_no_table(monkeypatch):
    """However many there are, those who follow an update look at once, and so few threads wait."""
    release, inside = threading.Event(), []

    def blocked(_):
        inside.append(threading.current_thread().name)
        release.wait(30)
        return Sighting(met=True, summary="")

    monkeypatch.setattr(TableVersionCondition, "look", blocked)

    async def follow():
        condition = TableVersionCondition("shop.orders", 1)
        sensors = [
            asyncio.create_task(anext(ConditionTrigger.of(condition, 0.05).run())) for _ in range(MANY)
        ]
        await asyncio.sleep(0.2)
        try:
            return await asyncio.wait_for(patiently(lambda: "seen", 0.01), 2)
        finally:
            release.set()
            await asyncio.gather(*sensors)

    assert asyncio.run(follow()) == "seen"
    assert len(set(inside)) <= THREADS
