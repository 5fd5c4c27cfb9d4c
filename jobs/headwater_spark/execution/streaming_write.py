"""A plain append flow: the Delta sink itself, in as many batches as the source's limits ask for."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.checkpoints.preflight import FlowStart, check_start
from headwater.checkpoints.table_history import table_exists
from headwater.definitions.dataset import Dataset
from headwater.definitions.flow import Flow
from headwater.event_log.details import FlowStatus, flow_progress
from headwater_spark.execution.outcome import FlowOutcome
from headwater_spark.execution.sink_commits import SinkCommits
from headwater_spark.execution.tables import create_table, table_id
from headwater_spark.execution.update_context import LAST_PROGRESS, UpdateContext
from headwater_spark.expectations import Quality, apply_expectations, read_quality
from headwater_spark.schemas import stored_schema
from headwater_spark.sources.source_schemas import Columns, check_source_schemas, stream_schemas

_OBSERVATION = "headwater"


def run_stream(context: UpdateContext, dataset: Dataset, flow: Flow, outcome: FlowOutcome) -> None:
    """Run a flow's query until what was available is in the table.

    Raises:
        CheckpointMismatch: where position and table no longer belong together; nothing was read.
        Whatever Spark throws, for ``flow_error`` to name.
    """
    checkpoint = context.checkpoint(dataset.name, flow.name)
    known = checkpoint.surviving_state()
    path = context.table_path(dataset)
    pipeline = context.pipeline.project.pipeline_id
    check_start(
        FlowStart(pipeline, flow.name, dataset.name, checkpoint, known or FlowState(), path, table_id(path))
    )
    epoch = known.epoch if known is not None else context.unused_epoch(dataset.name, flow.name)
    state = checkpoint.update_state(epoch=epoch, completed=False)
    batches = _BatchRecords(context, dataset, flow, state, outcome)
    name = context.query_name(flow.name)
    ended = context.listener.expect(name, batches.on_progress)
    # A query keeps the settings it was started with.
    with context.pipeline.evaluation.settings(flow):
        frame = _without_watermark_marks(context.pipeline.evaluation.evaluate(flow))
        checkpoint.update_state(source_schemas=_checked_schemas(context, flow, frame, state))
        frame = apply_expectations(frame, dataset.expectations, _OBSERVATION)
        query = _start(context, dataset, frame, state, flow, name)
    batches.started(query)
    _await(context, query, ended, lambda: _note_table(checkpoint, path))
    if not table_exists(path):  # no row ever came: the table is there all the same
        create_table(context.spark, dataset, path, context.pipeline.evaluation.schema_of(dataset))
    batches.record_missed()
    stopped = context.stop_requested.is_set()
    checkpoint.update_state(
        sink_id=table_id(path),
        completed=not stopped,
        definition_hash=context.pipeline.manifest.source_hash,
    )
    outcome.status = FlowStatus.STOPPED if stopped else FlowStatus.COMPLETED


def _checked_schemas(
    context: UpdateContext, flow: Flow, frame: DataFrame, state: FlowState
) -> dict[str, Columns]:
    evaluation = context.pipeline.evaluation
    own = {str(evaluation.table_path(dataset)) for dataset in context.pipeline.registry.datasets()}
    schemas, wanted = stream_schemas(frame, own)
    check_source_schemas(flow, state.source_schemas, schemas, wanted)
    return schemas


def _start(
    context: UpdateContext, dataset: Dataset, frame: DataFrame, state: FlowState, flow: Flow, name: str
) -> StreamingQuery:
    metadata = {"pipeline": context.pipeline.project.pipeline_id, "flow": flow.name, "epoch": state.epoch}
    checkpoint = context.checkpoint(dataset.name, flow.name).epoch_folder(state.epoch)
    writer = (
        frame.writeStream.format("delta")
        .outputMode(context.pipeline.evaluation.output_modes.get(flow.name, "append"))
        .queryName(name)
        .option("checkpointLocation", str(checkpoint))
        .option("userMetadata", json.dumps(metadata))
        .option("mergeSchema", "true")
        .trigger(availableNow=True)
    )
    if dataset.partition_columns:
        writer = writer.partitionBy(*dataset.partition_columns)
    return writer.start(str(context.table_path(dataset)))


def _note_table(checkpoint: FlowCheckpoint, path: Path) -> None:
    """Say early to which table the flow writes: a driver that is killed in its first update says nothing later."""
    state = checkpoint.read_state()
    if state is not None and state.sink_id is None and (sink := table_id(path)) is not None:
        checkpoint.update_state(sink_id=sink)


def _await(
    context: UpdateContext, query: StreamingQuery, ended: threading.Event, meanwhile: Callable[[], None]
) -> None:
    try:
        # Half seconds work; the annotation knows whole ones only.
        while not query.awaitTermination(0.5):  # type: ignore[arg-type]
            meanwhile()
            if context.stop_requested.is_set():
                # A batch in flight is given up and repeated by the next update: nothing is lost or doubled.
                query.stop()
                break
    finally:
        ended.wait(LAST_PROGRESS.total_seconds())


def _without_watermark_marks(frame: DataFrame) -> DataFrame:
    """Delta would store the mark of a watermark with the column, and readers of the table would inherit it."""
    stored = stored_schema(frame.schema)
    for field, plain in zip(frame.schema.fields, stored.fields, strict=True):
        if field.metadata != plain.metadata:
            frame = frame.withMetadata(field.name, plain.metadata)
    return frame


class _BatchRecords:
    """Turns a query's progress into one record per batch."""

    def __init__(
        self, context: UpdateContext, dataset: Dataset, flow: Flow, state: FlowState, outcome: FlowOutcome
    ) -> None:
        self._context = context
        self._dataset = dataset
        self._flow = flow
        self._epoch = state.epoch
        self._outcome = outcome
        self._folder: Path = context.checkpoint(dataset.name, flow.name).epoch_folder(state.epoch)
        self._known = context.recorded_batches.result().get((flow.name, state.epoch))
        context.events.set_known_batches(flow.name, state.epoch, self._known)
        self._seen: set[int] = set()
        self._first = self._last_committed() + 1
        self._started = threading.Event()
        self._commits: SinkCommits | None = None

    def started(self, query: StreamingQuery) -> None:
        """The query's id is known: commits can be found, first those of batches whose driver died before it told them.

        They come before this run's own: the log is read as if it had all batches up to the last.
        """
        self._commits = SinkCommits(self._context.table_path(self._dataset), str(query.id))
        self._record_untold(self._first - 1)
        self._started.set()

    def on_progress(self, progress: Any) -> None:
        """Record a batch; called by Spark's listener bus, in order."""
        batch_id = int(progress.batchId)
        # A trigger that found nothing reports the number of the batch that did not come about.
        if batch_id in self._seen or not (self._folder / "commits" / str(batch_id)).exists():
            return
        self._seen.add(batch_id)
        self._started.wait(60)
        observed = progress.observedMetrics.get(_OBSERVATION)
        rules = self._dataset.expectations
        quality = read_quality(observed.asDict(), rules) if observed is not None and rules else None
        end_offsets = [str(source.endOffset) for source in progress.sources]
        duration = int(progress.batchDuration or 0)
        self._record(batch_id, int(progress.numInputRows), quality, end_offsets, duration)

    def record_missed(self) -> None:
        """Record batches of this run that Spark's listener never told of."""
        self._record_untold(self._last_committed())

    def _record_untold(self, last: int) -> None:
        first = self._known + 1 if self._known is not None else 0
        for batch_id in range(max(first, self._first - 100), last + 1):
            if batch_id not in self._seen:
                self._seen.add(batch_id)
                self._record(batch_id, None, None, None, None)

    def _record(
        self,
        batch_id: int,
        input_rows: int | None,
        quality: Quality | None,
        end_offsets: Any,
        duration: int | None,
    ) -> None:
        commit = self._commits.find(batch_id) if self._commits else None
        output = commit.rows if commit else 0
        dropped = quality.dropped if quality else 0
        version = commit.version if commit else None
        if batch_id >= self._first or input_rows is not None:
            self._outcome.add_batch(
                input_rows=output if input_rows is None else input_rows, output_rows=output, dropped_rows=dropped, version=version
            )  # fmt: skip
        rules = [
            {
                "name": r.name,
                "dataset": self._dataset.name,
                "passed_records": r.passed,
                "failed_records": r.failed,
            }
            for r in (quality.rules if quality else ())
        ]
        told = (
            "" if input_rows is not None else " (found after its driver had died; its input was not counted)"
        )
        self._context.events.emit(
            "flow_progress",
            f"Batch {batch_id} of {self._flow.name}: {output} rows written, {dropped} dropped{told}.",
            level="METRICS",
            flow=self._flow.name,
            dataset=self._dataset.name,
            batch_id=batch_id,
            epoch=self._epoch,
            details=flow_progress(
                FlowStatus.RUNNING,
                metrics={
                    "num_input_rows": input_rows,
                    "num_output_rows": output,
                    "executor_time_ms": duration,
                },
                dropped=dropped,
                expectations=rules,
                version=version,
                end_offsets=end_offsets,
            ),
        )

    def _last_committed(self) -> int:
        folder = self._folder / "commits"
        if not folder.is_dir():
            return -1
        return max((int(p.name) for p in folder.iterdir() if p.name.isdigit()), default=-1)
