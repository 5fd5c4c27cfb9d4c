"""Flows in Spark's real-time mode: whether they have the cores that they need, and how they are stopped.

A task reads its partition for as long as a batch lasts, which is minutes: it needs a core of its own, always. The position is written at
the end of a batch only.

Decision 0189.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headwater.checkpoints.offsets import last_committed_batch
from headwater.definitions.flow_settings import is_real_time
from headwater.definitions.source import SourceKind
from headwater.graph.conditions import RealTimeNotPermitted
from headwater.graph.manifest import Manifest
from headwater.kafka.login import broker_connection
from headwater.kafka.offsets import Connect
from headwater.storage.place import Place
from headwater_spark.execution.flow_run import FlowRun

# Whoever has come so far has passed Spark's own checks, which are made when the first batch runs.
_RUNS_WELL_SECONDS = 10.0
_SERVERS = "kafka.bootstrap.servers"


def runs_in_real_time(run: FlowRun) -> bool:
    """Whether the query of a flow is started in real-time mode; in an update that ends it is not."""
    return run.context.continuous is not None and is_real_time(run.flow.spark_conf)


def check_cores(run: FlowRun) -> None:
    """Raise RealTimeNotPermitted where partitions would take the cores that other flows, or they themselves, need."""
    if not runs_in_real_time(run):
        return
    cores = _cores(run.context.spark)
    if cores is None:
        return
    pipeline = run.context.pipeline
    in_real_time = {flow.name for flow in pipeline.registry.flows() if is_real_time(flow.spark_conf)}
    partitions = count_partitions(pipeline.manifest, in_real_time, broker_connection(pipeline.project))
    others = any(flow.name not in in_real_time for flow in pipeline.manifest.flows)
    if partitions + others > cores:
        beside = ", and the other flows of the pipeline need one more" if others else ""
        raise RealTimeNotPermitted(
            f"{run.name!r} asks for Spark's real-time mode, which takes a core for each partition as long as it runs: its topics and those "
            f"of other flows like it have {partitions} partitions{beside}. Spark has {cores} cores.",
            where=run.flow.location,
            remedy="Give Spark more cores (`spark.master`, executors), or move the flow into a pipeline of its own, or take "
            "pipelines.trigger out of its spark_conf.",
        )


def count_partitions(manifest: Manifest, flows: Collection[str], connect: Connect) -> int:
    """How many partitions the topics have that these flows read; raises SourceUnreachable."""
    count = 0
    for flow in manifest.flows:
        for source in flow.sources if flow.name in flows else ():
            if source.kind is SourceKind.KAFKA and source.streaming:
                with connect(source.options[_SERVERS]) as reader:
                    count += len(reader.partitions(source.options))
    return count


def _cores(spark: SparkSession) -> int | None:
    """How many tasks can run at once; None where executors come and go."""
    context = spark.sparkContext
    if context.getConf().get("spark.dynamicAllocation.enabled", "false") == "true":
        return None
    scala = context._jsc.sc()  # noqa: SLF001 - Spark says it nowhere in Python
    return int(scala.maxNumConcurrentTasks(scala.resourceProfileManager().defaultResourceProfile()))


def has_settled(query: StreamingQuery, started_at: float) -> bool:
    """Whether a query, which never waits for a trigger, has run for some time. ``started_at``: of ``time.monotonic``."""
    return query.isActive and time.monotonic() - started_at >= _RUNS_WELL_SECONDS


def wait_for_position(
    query: StreamingQuery, folder: Place, seconds: float | None, *, recorded: Callable[[], bool]
) -> None:
    """Wait until the batch that runs has committed its position and is recorded, for ``seconds`` at most (None: without limit).

    What is sent after that position is sent again by the next update.
    """
    before = last_committed_batch(folder)
    ends = None if seconds is None else time.monotonic() + seconds
    while query.isActive and (ends is None or time.monotonic() < ends):
        if last_committed_batch(folder) != before and recorded():
            return
        time.sleep(0.05)
