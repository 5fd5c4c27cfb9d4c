"""The context of a backfill or a replay: the resolved pipeline over its real tables, and the event log."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack, contextmanager

from headwater.event_log.reader import last_batches
from headwater.event_log.writer import EventLogWriter
from headwater.graph.pipeline_project import PipelineProject
from headwater.leases.lease import BesideUpdates, Lease
from headwater.telemetry.otlp import metrics_export
from headwater_spark.execution.progress import ProgressListener
from headwater_spark.execution.update_context import UpdateContext
from headwater_spark.resolution.graph_resolution import resolved_pipeline
from headwater_spark.session import start_session


@contextmanager
def live_context(
    project: PipelineProject,
    run_id: str,
    request_id: str | None = None,
    *,
    lease: AbstractContextManager[Lease] | None = None,
) -> Iterator[UpdateContext]:
    """The context while the block runs. ``lease``: acquired for it; None where it runs beside updates."""
    spark = start_session(project.pipeline_id, project.spark_conf)
    with ExitStack() as stack:
        pipeline = stack.enter_context(resolved_pipeline(project, spark))
        held_lease = stack.enter_context(lease) if lease is not None else BesideUpdates()
        recorded: Future[dict[tuple[str, int], int]] = Future()
        recorded.set_result(last_batches(project.state_folder))
        writer = EventLogWriter(
            project.state_folder, project.pipeline_id, project.spec.name, run_id, request_id
        )
        metrics = stack.enter_context(metrics_export())
        events = stack.enter_context(writer)
        events.subscribe(metrics.offer)
        pipeline.evaluation.live = True
        yield UpdateContext(pipeline, spark, events, ProgressListener(), run_id, recorded, held_lease)
