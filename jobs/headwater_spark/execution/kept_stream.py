"""What is done beside a stream that does not end, and otherwise at its end."""

from __future__ import annotations

import time
from collections.abc import Callable

from pyspark.sql.streaming.query import StreamingQuery

from headwater.event_log.details import FlowStatus
from headwater_spark.execution.batch_records import BatchRecords
from headwater_spark.execution.file_cleaning import clean_sources
from headwater_spark.execution.flow_run import FlowRun
from headwater_spark.execution.real_time import has_settled, runs_in_real_time

_UPKEEP_SECONDS = 60.0
# Spark's words for a query that has looked, and waits.
_WAITING = "Waiting"


class KeptStream:
    """A stream of a continuous update, looked at while it runs.

    Args:
        save_position: saves what the checks of the flow's next start compare.
    """

    def __init__(
        self, run: FlowRun, query: StreamingQuery, batches: BatchRecords, save_position: Callable[[], None]
    ) -> None:
        self._run, self._query, self._batches, self._save = run, query, batches, save_position
        self._batches_before, self._saved_at = run.outcome.batches, 0
        self._runs = False
        self._real_time = runs_in_real_time(run)
        self._started_at = time.monotonic()
        self._next_upkeep = self._started_at + _UPKEEP_SECONDS

    def look(self) -> None:
        """Called about twice a second. Raises RowsNotConserved where a batch did not write what it should have."""
        self._batches.check_conservation()
        if not self._runs and self._has_looked():
            self._begin_running()
        if time.monotonic() >= self._next_upkeep:
            self._next_upkeep = time.monotonic() + _UPKEEP_SECONDS
            self._upkeep()

    def is_idle(self) -> bool:
        """Whether it waits for its next trigger, and all that it has written is recorded: it can be stopped at once."""
        return self._run.context.continuous is not None and self._waits() and self._batches.all_recorded

    def _waits(self) -> bool:
        status = self._query.status
        return str(status["message"]).startswith(_WAITING) and not status["isTriggerActive"]

    def _has_looked(self) -> bool:
        written = self._run.outcome.batches > self._batches_before
        if self._real_time:
            return written or has_settled(self._query, self._started_at)
        return written or self._waits()

    def _begin_running(self) -> None:
        continuous = self._run.context.continuous
        assert continuous is not None
        self._runs = True
        continuous.is_running(self._run.name)
        interval = continuous.intervals[self._run.name]
        does = "commits its position" if self._real_time else "looks for new data"
        self._run.record(FlowStatus.RUNNING, f"{self._run.name} runs, and {does} every {interval:g} s.")

    def _upkeep(self) -> None:
        if self._run.outcome.batches == self._saved_at:
            return
        self._saved_at = self._run.outcome.batches
        self._save()
        clean_sources(self._run)
