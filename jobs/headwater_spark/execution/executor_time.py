"""How long executors worked for a query, from Spark's own records of its jobs, without a listener or a job of ours."""

from __future__ import annotations

from contextlib import suppress

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

_KEPT = 1000


class ExecutorTime:
    """The run time of one query's tasks, batch by batch."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._jobs: set[int] = set()
        self._stages: set[int] = set()

    def take(self, run_id: str) -> int | None:
        """Milliseconds since the last call; None where Spark does not know.

        ``run_id``: of the query's run, by which Spark groups its jobs.
        """
        try:
            java = self._spark.sparkContext._jsc  # noqa: SLF001 - Python's tracker has no times
            store, stage_infos = java.sc().statusStore(), java.statusTracker()
            tracker = self._spark.sparkContext.statusTracker()
            known = set(tracker.getJobIdsForGroup(run_id))
            infos = [tracker.getJobInfo(job) for job in known - self._jobs]
        except Py4JError:
            return None
        self._jobs = known  # those that Spark has forgotten do not come back
        stages = {stage for info in infos if info is not None for stage in info.stageIds} - self._stages
        # A stage belongs to jobs that follow each other closely, if to several.
        self._stages = set(sorted(self._stages | stages)[-_KEPT:])
        total = 0
        for stage in stages:
            with suppress(Py4JError):  # it may be forgotten in between
                # One that was skipped has no attempt; an error of Java's takes PySpark many calls.
                if stage_infos.getStageInfo(stage) is not None:
                    total += int(store.lastStageAttempt(stage).executorRunTime())
        return total
