"""Wakes a pipeline's DAG when its sources have data that it has not read. It runs in the triggerer as the watcher of an asset."""

from __future__ import annotations

from headwater.arrivals.arrival_rule import ArrivalRule
from headwater.arrivals.arrival_watch import ArrivalWatch
from headwater_airflow.conditions.observed import ObservedPipeline
from headwater_airflow.triggers.watching import WatchTrigger, seconds_of


class DataArrivalTrigger(WatchTrigger):
    """Emits an event when a pipeline has something to read: files, messages, commits of tables that others write.

    One trigger looks at all sources of a pipeline. It announces what the pipeline's checkpoints have not read, once.

    Args:
        pipeline: the name of the pipeline's folder.
        quiet_seconds, files, records, versions, wait_seconds: as in ArrivalRule.

    Between two looks lie HEADWATER_DATA_POLL_SECONDS (of the triggerer's environment; 10).

    """

    arguments = ("pipeline", "quiet_seconds", "files", "records", "versions", "wait_seconds")

    def __init__(
        self,
        pipeline: str,
        quiet_seconds: float = 0.0,
        files: int = 1,
        records: int = 1,
        versions: int = 1,
        wait_seconds: float | None = None,
    ) -> None:
        super().__init__()
        self.pipeline = pipeline
        self.quiet_seconds = quiet_seconds
        self.files = files
        self.records = records
        self.versions = versions
        self.wait_seconds = wait_seconds

    def watched(self) -> str:
        """The pipeline's sources."""
        return f"The data of {self.pipeline}"

    def poll_seconds(self) -> float:
        """As the environment says."""
        return seconds_of("HEADWATER_DATA_POLL_SECONDS", 10.0)

    def open_watch(self) -> ArrivalWatch:
        """The watch over all sources."""
        rule = ArrivalRule.checked(
            self.quiet_seconds, self.files, self.records, self.versions, self.wait_seconds
        )
        read = ObservedPipeline(self.pipeline).read
        # A trigger keeps its id over restarts of the triggerer. A DAG that was paused and is not any more has another.
        return ArrivalWatch(self.pipeline, read, rule, watcher=self.trigger_id)
