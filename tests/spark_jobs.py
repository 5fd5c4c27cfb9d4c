"""The Spark jobs that a piece of a test took."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession


def newest_jobs(spark: SparkSession, most: int = 60) -> list[Any]:
    """The newest jobs that the session knows of, the last one first, as Spark's status store has them."""
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    jobs = context.statusStore().jobsList(None)
    return [jobs.apply(place) for place in range(min(most, jobs.size()))]


def last_job(spark: SparkSession) -> int:
    """The number of the newest job, -1 before the first."""
    return max((job.jobId() for job in newest_jobs(spark, 1)), default=-1)


def jobs_since(spark: SparkSession, number: int) -> list[str]:
    """The jobs after that one: what each is, and for what."""
    return [f"{job.name()} | {job.description()}" for job in newest_jobs(spark) if job.jobId() > number]
