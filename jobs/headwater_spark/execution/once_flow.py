"""A flow that runs one time: a bounded read appended in one transaction, and not again until a full refresh."""

from __future__ import annotations

import json

from pyspark.sql import Observation

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
    state = checkpoint.read_state() or checkpoint.update_state(epoch=0)
    path = context.table_path(dataset)
    if state.completed:
        outcome.status = FlowStatus.COMPLETED
        checkpoint.update_state(definition_hash=context.pipeline.manifest.source_hash)
        return
    observation = Observation()
    frame = apply_expectations(context.pipeline.evaluation.evaluate(flow), dataset.expectations, observation)
    metadata = {"pipeline": context.pipeline.project.pipeline_id, "flow": flow.name, "epoch": state.epoch}
    before = latest_version(path)
    (
        frame.write.format("delta")
        .mode("append")
        .option("mergeSchema", "true")
        .option("txnAppId", f"{context.pipeline.project.pipeline_id}.{flow.name}@{state.epoch}")
        .option("txnVersion", "0")
        .option("userMetadata", json.dumps(metadata))
        .save(str(path))
    )
    if latest_version(path) > before:
        quality = read_quality(observation.get, dataset.expectations)
        written = quality.rows - quality.dropped
        outcome.add_batch(
            input_rows=quality.rows,
            output_rows=written,
            dropped_rows=quality.dropped,
            version=latest_version(path),
        )
        metrics = {"num_input_rows": quality.rows, "num_output_rows": written}
        context.flow_event(
            outcome,
            FlowStatus.RUNNING,
            f"{flow.name} appended {written} rows, once.",
            metrics=metrics,
            dropped=quality.dropped,
            version=outcome.version,
        )
    checkpoint.update_state(
        sink_id=table_id(path), completed=True, definition_hash=context.pipeline.manifest.source_hash
    )
    outcome.status = FlowStatus.COMPLETED
