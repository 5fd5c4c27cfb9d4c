"""Waits until a pipeline has caught up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from headwater.errors import HeadwaterError
from headwater_airflow.lag_reading import LagLimits, read_lag

_LIMITS = ("max_seconds", "max_records", "max_bytes", "max_files", "max_versions")


class LagTrigger(BaseTrigger):  # type: ignore[misc]  # Airflow's types are not followed
    """Fires when the lag of a pipeline, or of one table, is at or under its limits; or when that can never be.

    Args:
        pipeline: the name of the pipeline's folder.
        dataset: only this table; None for all.
        max_seconds, max_records, max_bytes, max_files, max_versions: the limits.
        poll_seconds: between two measurements.

    """

    def __init__(
        self,
        pipeline: str,
        dataset: str | None = None,
        max_seconds: float | None = None,
        max_records: float | None = None,
        poll_seconds: float = 30.0,
        max_bytes: float | None = None,
        max_files: float | None = None,
        max_versions: float | None = None,
    ) -> None:
        super().__init__()
        self.pipeline = pipeline
        self.dataset = dataset
        self.max_seconds = max_seconds
        self.max_records = max_records
        self.poll_seconds = poll_seconds
        self.max_bytes = max_bytes
        self.max_files = max_files
        self.max_versions = max_versions

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the trigger's class and arguments."""
        names = ("pipeline", "dataset", *_LIMITS, "poll_seconds")
        return f"{type(self).__module__}.{type(self).__qualname__}", {
            name: getattr(self, name) for name in names
        }

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Measure until the limits are met."""
        limits = LagLimits(*(getattr(self, name) for name in _LIMITS))
        told = ""
        while True:
            try:
                reading = await asyncio.to_thread(read_lag, self.pipeline, self.dataset, limits)
            except HeadwaterError as error:
                if not error.transient:
                    yield TriggerEvent({"error": str(error)})
                    return
                summary = str(error)
            else:
                if reading.within_limits:
                    yield TriggerEvent(reading.as_dict())
                    return
                summary = reading.summary()
            if summary != told:
                told = summary
                self.log.info(summary)
            await asyncio.sleep(self.poll_seconds)
