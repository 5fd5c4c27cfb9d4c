"""A flow that runs one time: a bounded read appended in one transaction, and not again until a full refresh."""

from __future__ import annotations

import json
from pathlib import Path

from pyspark.sql import Observation

from headwater.checkpoints.layout import FlowState
from headwater.checkpoints.preflight import CHECKS_OF_ONCE_FLOWS, FlowStart, check_start
from headwater.checkpoints.table_history import epochs_written, table_exists
from headwater.definitions.dataset import Dataset
from headwater.definitions.flow import Flow
from headwater.event_log.details import FlowStatus
from headwater_spark.execution.outcome import FlowOutcome
from headwater_spark.execution.sink_commits import latest_version
from headwater_spark.execution.tables import table_id
from headwater_spark.execution.update_context import UpdateContext
from headwater_spark.expectations import apply_expectations, read_quality


def run_once(context: UpdateContext, dataset: Dataset, flow: Flow, outcome: FlowOutcome) -> None:
    """Append the flow's rows unless it has done so; a crash between commit and record repeats nothing (transaction id)."""
    checkpoint = context.checkpoint(dataset.name, flow.name)
    path = context.table_path(dataset)
    pipeline = context.pipeline.project.pipeline_id
    known = checkpoint.read_state()
    check_start(
        FlowStart(pipeline, flow.name, dataset.name, checkpoint, known or FlowState(), path, table_id(path)),
        CHECKS_OF_ONCE_FLOWS,
    )
    # Where its state is lost, the table's log knows under which epoch its rows are there.
    state = known or checkpoint.update_state(epoch=max(epochs_written(path, pipeline, flow.name), default=0))
    if state.completed:
        outcome.status = FlowStatus.COMPLETED
        checkpoint.update_state(definition_hash=context.pipeline.manifest.source_hash)
        return
    with context.pipeline.evaluation.settings(flow):
        _append(context, dataset, flow, state, outcome)
    checkpoint.update_state(
        sink_id=table_id(path), completed=True, definition_hash=context.pipeline.manifest.source_hash
    )
    outcome.status = FlowStatus.COMPLETED


def _append(
    context: UpdateContext, dataset: Dataset, flow: Flow, state: FlowState, outcome: FlowOutcome
) -> None:
    path = context.table_path(dataset)
    application = f"{context.pipeline.project.pipeline_id}.{flow.name}@{state.epoch}"
    if _has_committed(path, application):  # its driver died before it could say so
        return
    observation = Observation()
    frame = apply_expectations(context.pipeline.evaluation.evaluate(flow), dataset.expectations, observation)
    metadata = {"pipeline": context.pipeline.project.pipeline_id, "flow": flow.name, "epoch": state.epoch}
    (
        frame.write.format("delta")
        .mode("append")
        .option("mergeSchema", "true")
        .option("txnAppId", application)
        .option("txnVersion", "0")
        .option("userMetadata", json.dumps(metadata))
        .save(str(path))
    )
    quality = read_quality(observation.get, dataset.expectations)
    written = quality.rows - quality.dropped
    outcome.add_batch(
        input_rows=quality.rows,
        output_rows=written,
        dropped_rows=quality.dropped,
        version=latest_version(path),
    )
    context.flow_event(
        outcome,
        FlowStatus.RUNNING,
        f"{flow.name} appended {written} rows, once.",
        metrics={"num_input_rows": quality.rows, "num_output_rows": written},
        dropped=quality.dropped,
        version=outcome.version,
    )


def _has_committed(path: Path, application: str) -> bool:
    from deltalake import DeltaTable

    return table_exists(path) and DeltaTable(str(path)).transaction_version(application) is not None
