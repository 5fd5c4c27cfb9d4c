"""Starting a flow's query: on the Delta sink itself where it can be, else batch by batch through a target."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from headwater.checkpoints.conditions import NameTaken
from headwater.checkpoints.layout import FlowState
from headwater.checkpoints.offsets import last_committed_batch, last_planned_batch, query_id
from headwater.definitions.dataset import Dataset
from headwater.definitions.expectation import needs_judgement
from headwater.definitions.flow import Flow
from headwater.definitions.sink import SinkKind
from headwater.delta_log.table_history import table_exists
from headwater.quarantine.table import is_quarantine
from headwater_spark.auto_cdc.apply_changes import ChangeTarget
from headwater_spark.delta_writes.batch_transaction import BatchTarget
from headwater_spark.delta_writes.delta_append import DeltaAppend
from headwater_spark.delta_writes.delta_merge import DeltaMerge
from headwater_spark.delta_writes.delta_replace import DeltaReplace
from headwater_spark.delta_writes.sink_commits import has_transaction
from headwater_spark.execution.destination import delta_table
from headwater_spark.execution.foreach_batch import BatchWriter
from headwater_spark.execution.targets.auto_cdc import AutoCdc
from headwater_spark.execution.targets.judged import Judged
from headwater_spark.execution.targets.user_function import UserFunction
from headwater_spark.execution.update_context import UpdateContext
from headwater_spark.plans.output_mode import OutputMode
from headwater_spark.quarantine.quarantine_table import QuarantineTable
from headwater_spark.quarantine.unreadable_files import UnreadableFile


@dataclass(frozen=True)
class StartedStream:
    """A running query. ``applications``: the ids under which its commits are found in a Delta log.

    There are two where a flow came to be judged, or ceased to be, and wrote in another way before.
    """

    query: StreamingQuery
    applications: tuple[str, ...]
    writer: BatchWriter | None = None
    judged: Judged | None = None


def start_stream(
    context: UpdateContext,
    dataset: Dataset,
    flow: Flow,
    state: FlowState,
    frame: DataFrame,
    unreadable: Sequence[UnreadableFile] = (),
) -> StartedStream:
    """Start the query of a flow over ``frame``. ``unreadable``: files that it leaves out, for the quarantine."""
    mode = context.pipeline.evaluation.output_modes.get(flow.name, OutputMode())
    folder = context.checkpoint(dataset.name, flow.name).epoch_folder(state.epoch)
    identity = context.identity(dataset.name, flow.name)
    metadata: dict[str, Any] = {
        "pipeline": identity.pipeline,
        "flow": identity.flow,
        "epoch": state.epoch,
    }
    stream = (
        frame.writeStream.outputMode(mode.query_mode)
        .queryName(context.query_name(flow.name))
        .option("checkpointLocation", str(folder))
        .trigger(availableNow=True)
    )
    application = identity.application(state.epoch)
    target = batch_target(context, dataset, flow, mode)
    judged = None
    if needs_judgement(dataset.expectations):
        judged = _judged(context, dataset, flow, state, target)
        judged.unreadable = unreadable
        judged.one_pass = not state.state_settings
        target = judged
    elif target is None and _written_as_batch(context, dataset, folder, application):
        target = DeltaAppend(context.table_path(dataset), dataset.partition_columns)
    if target is None:
        query = _start_native(context, dataset, stream, metadata)
        return StartedStream(query, (str(query.id), application))
    stateful = bool(state.state_settings)
    writer = BatchWriter(target, application, folder, metadata, stateful=stateful, fence=context.check_lease)
    query = stream.foreachBatch(writer).start()
    return StartedStream(query, (application, str(query.id)), writer, judged)


def _judged(
    context: UpdateContext, dataset: Dataset, flow: Flow, state: FlowState, target: BatchTarget | None
) -> Judged:
    table = context.table_path(dataset)
    folder = context.checkpoint(dataset.name, flow.name).epoch_folder(state.epoch)
    # The Delta sink may have written a batch before the first rule that judges came.
    target = target or DeltaAppend(table, dataset.partition_columns, query_id=query_id(folder))
    return Judged(target, dataset.expectations, table, quarantine_table(context, dataset, flow, state.epoch))


def quarantine_table(
    context: UpdateContext, dataset: Dataset, flow: Flow, epoch: int
) -> QuarantineTable | None:
    """The quarantine table of a dataset as a flow writes to it; None where no rule quarantines.

    Raises:
        NameTaken: another table is there, which no dataset of the pipeline need be.
    """
    path = context.quarantine_path(dataset)
    if path is None:
        return None
    if table_exists(path) and not is_quarantine(path):
        raise NameTaken(
            f"Rows that the rules of {dataset.name!r} keep out would go to a table that is no quarantine: {path}",
            where=dataset.location,
            remedy="Give that table another name or place, or this one: <table>_quarantine is taken by the rules.",
        )
    return QuarantineTable(path, context.identity(dataset.name, flow.name).flow, epoch, context.update_id)


def _written_as_batch(context: UpdateContext, dataset: Dataset, folder: Path, application: str) -> bool:
    """Whether the planned batch is in the table under the id of foreachBatch, by which the Delta sink would not know it."""
    planned, done = last_planned_batch(folder), last_committed_batch(folder)
    if dataset.sink is not None or planned is None or planned == done:
        return False
    return has_transaction(context.table_path(dataset), application, planned)


def batch_target(
    context: UpdateContext, dataset: Dataset, flow: Flow, mode: OutputMode
) -> BatchTarget | None:
    """What takes the flow's batches one by one, None where a sink of Spark's takes the stream.

    The Delta sink itself is some 10% quicker: a batch that goes through Python's foreachBatch becomes rows first.
    """
    sink = dataset.sink
    if sink is not None:
        find = context.pipeline.evaluation.find_table
        return UserFunction(sink.function, find) if sink.function is not None else None
    if flow.changes is not None:
        return change_target(context, dataset, flow)
    if flow.replacement is not None:
        return DeltaReplace(context.table_path(dataset), flow.replacement)
    return DeltaMerge(context.table_path(dataset), mode.keys) if mode.name == "update" else None


def change_target(context: UpdateContext, dataset: Dataset, flow: Flow) -> AutoCdc:
    """What takes the batches of a change flow."""
    memory = context.change_memory(dataset.name)
    configuration = context.pipeline.project.configuration
    target = ChangeTarget.of(context.table_path(dataset), memory, dataset.table_properties, configuration)
    return AutoCdc(target, context.pipeline.evaluation.changes[flow.name], flow.location)


def _start_native(
    context: UpdateContext, dataset: Dataset, stream: DataStreamWriter, metadata: dict[str, Any]
) -> StreamingQuery:
    sink = dataset.sink
    if sink is not None and sink.kind is not SinkKind.DELTA:
        return stream.format(sink.format).options(**sink.options).start()
    if sink is not None:
        managed = {"path", "tablename"}
        stream = stream.options(**{k: v for k, v in sink.options.items() if k.lower() not in managed})
    stream = stream.format("delta").option("userMetadata", json.dumps(metadata)).option("mergeSchema", "true")
    if dataset.partition_columns:
        stream = stream.partitionBy(*dataset.partition_columns)
    return stream.start(str(delta_table(context, dataset)))
