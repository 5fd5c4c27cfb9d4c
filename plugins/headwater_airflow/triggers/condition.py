"""Waits for a condition."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from headwater.errors import HeadwaterError
from headwater_airflow.conditions.change_feed import ChangeFeedCondition
from headwater_airflow.conditions.checkpoint_health import CheckpointHealthCondition
from headwater_airflow.conditions.condition import Condition
from headwater_airflow.conditions.freshness import FreshnessCondition
from headwater_airflow.conditions.lag import LagCondition
from headwater_airflow.conditions.table_version import TableVersionCondition
from headwater_airflow.conditions.watermark import WatermarkCondition
from headwater_airflow.triggers.threads import in_thread

_KINDS: dict[str, type[Condition]] = {
    kind.__name__: kind
    for kind in (
        ChangeFeedCondition,
        CheckpointHealthCondition,
        FreshnessCondition,
        LagCondition,
        TableVersionCondition,
        WatermarkCondition,
    )
}


class ConditionTrigger(BaseTrigger):  # type: ignore[misc]  # Airflow's types are not followed
    """Fires when a condition is met, or can never be; it holds plain values only, so it survives any restart.

    Args:
        kind: the name of the condition's class.
        arguments: the condition's values.
        poll_seconds: between two looks.

    """

    def __init__(self, kind: str, arguments: Mapping[str, Any], poll_seconds: float = 30.0) -> None:
        super().__init__()
        self.kind = kind
        self.arguments = dict(arguments)
        self.poll_seconds = poll_seconds

    @classmethod
    def of(cls, condition: Condition, poll_seconds: float) -> ConditionTrigger:
        """The trigger that waits for ``condition``."""
        return cls(type(condition).__name__, condition.arguments(), poll_seconds)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the trigger's class and arguments."""
        names = ("kind", "arguments", "poll_seconds")
        return f"{type(self).__module__}.{type(self).__qualname__}", {
            name: getattr(self, name) for name in names
        }

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look until the condition is met."""
        condition = _KINDS[self.kind](**self.arguments)
        last_summary = ""
        while True:
            try:
                sighting = await in_thread("condition", condition.look)
            except (HeadwaterError, OSError) as error:
                if isinstance(error, HeadwaterError) and not error.transient:
                    yield TriggerEvent({"error": str(error)})
                    return
                summary = str(error)
            else:
                if sighting.met:
                    yield TriggerEvent(dict(sighting.payload))
                    return
                summary = sighting.summary
            if summary != last_summary:
                last_summary = summary
                self.log.info(summary)
            await asyncio.sleep(self.poll_seconds)
