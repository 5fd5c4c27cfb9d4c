"""A flow that runs one time: a bounded read written in one go, and not again until a full refresh."""

from __future__ import annotations

import json
from pathlib import Path

from pyspark.sql import DataFrame, Observation

from headwater.checkpoints.layout import FlowState
from headwater.definitions.dataset import Dataset
from headwater.definitions.expectation import needs_judgement
from headwater.definitions.flow import Flow
from headwater.delta_log.table_history import epochs_written, head_version
from headwater.event_log.details import FlowStatus
from headwater.preflight.checks import CHECKS_OF_ONCE_FLOWS
from headwater_spark.auto_cdc.change_metrics import change_metrics, engine_details
from headwater_spark.delta_writes.batch_transaction import BatchTransaction, apart
from headwater_spark.delta_writes.delta_append import DeltaAppend
from headwater_spark.delta_writes.sink_commits import SinkCommits, has_transaction, quality_details
from headwater_spark.execution.destination import delta_table, destination_id
from headwater_spark.execution.outcome import FlowOutcome
from headwater_spark.execution.start_checks import check_flow
from headwater_spark.execution.stream_start import change_target, quarantine_table
from headwater_spark.execution.targets.judged import Judged
from headwater_spark.execution.targets.user_function import UserFunction
from headwater_spark.execution.update_context import UpdateContext
from headwater_spark.facade.tables_by_name import FindTable
from headwater_spark.rules.expectations import Quality, apply_expectations, read_quality
from headwater_spark.rules.judgement import mark_rows
from headwater_spark.rules.source_records import with_source


def run_once(context: UpdateContext, dataset: Dataset, flow: Flow, outcome: FlowOutcome) -> None:
    """Append the flow's rows unless it has done so; a crash between commit and record repeats nothing (transaction id)."""
    checkpoint = context.checkpoint(dataset.name, flow.name)
    table = delta_table(context, dataset)
    known = checkpoint.read_state()
    check_flow(context, dataset, flow, known or FlowState(), CHECKS_OF_ONCE_FLOWS)
    # Where its state is lost, the table's log knows under which epoch its rows are there.
    written = (
        epochs_written(table, *context.identity(dataset.name, flow.name).names) if table is not None else []
    )
    state = known or checkpoint.update_state(epoch=max(written, default=0))
    if state.completed:
        outcome.status = FlowStatus.COMPLETED
        checkpoint.update_state(definition_hash=context.pipeline.manifest.source_hash)
        return
    with context.pipeline.evaluation.settings(flow):
        _append(context, dataset, flow, state, outcome)
    context.check_lease()
    checkpoint.update_state(
        sink_id=destination_id(context, dataset),
        completed=True,
        definition_hash=context.pipeline.manifest.source_hash,
    )
    outcome.status = FlowStatus.COMPLETED


def _append(
    context: UpdateContext, dataset: Dataset, flow: Flow, state: FlowState, outcome: FlowOutcome
) -> None:
    table = delta_table(context, dataset)
    identity = context.identity(dataset.name, flow.name)
    application = identity.application(state.epoch)
    if table is not None and has_transaction(table, application, 0):  # its driver died before it could say so
        return
    frame = context.pipeline.evaluation.evaluate(flow)
    metadata = json.dumps({"pipeline": identity.pipeline, "flow": identity.flow, "epoch": state.epoch})
    transaction = BatchTransaction(application, 0, metadata)
    context.check_lease()
    if needs_judgement(dataset.expectations):
        quality = _write_judged(context, dataset, flow, state, frame, transaction)
    else:
        observation = Observation()
        frame = apply_expectations(frame, dataset.expectations, observation)
        if flow.changes is not None:
            change_target(context, dataset, flow).write(apart(frame), transaction)
        else:
            _write(dataset, frame, table, transaction, context.pipeline.evaluation.find_table)
        quality = read_quality(observation.get, dataset.expectations)
    commit = (
        SinkCommits(table, application).find(0) if flow.changes is not None and table is not None else None
    )
    written = commit.rows if commit is not None else quality.kept
    outcome.add_batch(
        input_rows=quality.rows,
        output_rows=written,
        dropped_rows=quality.dropped,
        quarantined_rows=quality.quarantined,
        version=head_version(table) if table is not None else None,
    )
    context.flow_event(
        outcome,
        FlowStatus.RUNNING,
        f"{flow.name} appended {written} rows, once.",
        metrics={
            "num_input_rows": quality.rows,
            "num_output_rows": written,
            "num_upserted_rows": commit.upserted if commit else None,
            "num_deleted_rows": commit.deleted if commit else None,
            **change_metrics(commit),
        },
        **engine_details(commit),
        version=outcome.version,
    )
    outcome.data_quality = quality_details(quality, dataset.name)


def _write_judged(
    context: UpdateContext,
    dataset: Dataset,
    flow: Flow,
    state: FlowState,
    frame: DataFrame,
    transaction: BatchTransaction,
) -> Quality:
    path = context.table_path(dataset)
    changes = flow.changes is not None
    target = (
        change_target(context, dataset, flow) if changes else DeltaAppend(path, dataset.partition_columns)
    )
    quarantine = quarantine_table(context, dataset, flow, state.epoch)
    judged = Judged(target, dataset.expectations, path, quarantine)
    judged.write(apart(mark_rows(with_source(frame), dataset.expectations)), transaction)
    return judged.qualities[transaction.batch_id]


def _write(
    dataset: Dataset,
    rows: DataFrame,
    table: Path | None,
    transaction: BatchTransaction,
    find_table: FindTable,
) -> None:
    sink = dataset.sink
    if table is not None:
        DeltaAppend(table, dataset.partition_columns).write(rows, transaction)
    elif sink is not None and sink.function is not None:
        kept = rows.persist()
        try:
            UserFunction(sink.function, find_table).write(kept, transaction)
        finally:
            kept.unpersist()
    elif sink is not None:
        rows.write.format(sink.format).mode("append").options(**sink.options).save()
