"""How long executors worked for a query since they were last asked about."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError

from headwater_spark.execution import executor_time
from headwater_spark.execution.executor_time import ExecutorTime


class Spark:
    """Spark's records: the stages of jobs, and what each stage took; None: it was skipped."""

    def __init__(self) -> None:
        self.jobs: dict[int, list[int] | None] = {}
        self.times: dict[int, int | None] = {}
        self.fails = False
        tracker = SimpleNamespace(getJobIdsForGroup=self._ids, getJobInfo=self._info)
        store = SimpleNamespace(lastStageAttempt=self._attempt)
        of_java = SimpleNamespace(getStageInfo=lambda stage: None if self.times[stage] is None else object())
        jsc = SimpleNamespace(
            sc=lambda: SimpleNamespace(statusStore=lambda: store), statusTracker=lambda: of_java
        )
        self.sparkContext = SimpleNamespace(_jsc=jsc, statusTracker=lambda: tracker)

    def _ids(self, run: str) -> list[int]:
        if self.fails:
            raise Py4JError("gone")
        assert run == "r"
        return list(self.jobs)

    def _info(self, job: int) -> Any:
        stages = self.jobs[job]
        return None if stages is None else SimpleNamespace(stageIds=stages)

    def _attempt(self, stage: int) -> Any:
        took = self.times[stage]
        assert took is not None, "a stage that was skipped: an error of Java's, where none has to be"
        return SimpleNamespace(executorRunTime=lambda: took)


def test_each_stage_is_counted_once():
    """A batch has the time of the stages that are new since the one before, also where a later job names an earlier stage."""
    spark = Spark()
    time = ExecutorTime(spark)  # type: ignore[arg-type]
    spark.jobs, spark.times = {1: [1, 2], 2: None}, {1: 10, 2: 5}
    assert time.take("r") == 15
    assert time.take("r") == 0
    spark.jobs |= {3: [2, 3, 4]}
    spark.times |= {3: 7, 4: None}
    assert time.take("r") == 7


def test_jobs_that_spark_has_forgotten():
    """It keeps so many; those that are left are not counted again."""
    spark = Spark()
    time = ExecutorTime(spark)  # type: ignore[arg-type]
    spark.jobs, spark.times = {1: [1], 2: [2]}, {1: 10, 2: 5, 3: 1}
    time.take("r")
    spark.jobs = {2: [2], 3: [3]}
    assert time.take("r") == 1


def test_a_spark_that_does_not_answer():
    """The time is not known, which is not none at all."""
    spark = Spark()
    spark.fails = True
    assert ExecutorTime(spark).take("r") is None  # type: ignore[arg-type]


def test_so_many_stages_are_known(monkeypatch: pytest.MonkeyPatch):
    """Those of the jobs before, which a later job may name again; not all of a query that runs for days."""
    monkeypatch.setattr(executor_time, "_KEPT", 2)
    spark = Spark()
    time = ExecutorTime(spark)  # type: ignore[arg-type]
    spark.jobs, spark.times = {1: [1, 2, 3]}, {1: 10, 2: 5, 3: 1}
    assert time.take("r") == 16
    spark.jobs |= {2: [2, 3]}
    assert time.take("r") == 0
