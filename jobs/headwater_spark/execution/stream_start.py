"""Start a flow's query: on Delta's own sink where possible, otherwise batch by batch through a target."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from headwater.checkpoints.layout import FlowState
from headwater.checkpoints.offsets import last_committed_batch, last_planned_batch, query_id
from headwater.definitions.expectation import needs_judgement
from headwater.definitions.sink import SinkKind
from headwater.delta_log.table_history import has_transaction
from headwater.storage.place import Place
from headwater_spark.active_session import made_active
from headwater_spark.delta_writes.batch_transaction import BatchTarget
from headwater_spark.delta_writes.known_transactions import stream_format
from headwater_spark.execution.flow_run import FlowRun
from headwater_spark.execution.flow_writer import judged_target, takes_streams, target_of
from headwater_spark.execution.foreach_batch import BatchWriter
from headwater_spark.execution.targets.judged import Judged
from headwater_spark.quarantine.unreadable_files import UnreadableFile


@dataclass(frozen=True)
class StartedStream:
    """A running query. ``applications``: the ids under which its commits are found in a Delta log.

    There are two where a flow's rules changed so that it writes in another way than before.
    """

    query: StreamingQuery
    applications: tuple[str, ...]
    writer: BatchWriter | None = None
    judged: Judged | None = None


def start_stream(
    run: FlowRun, state: FlowState, frame: DataFrame, unreadable: Sequence[UnreadableFile] = ()
) -> StartedStream:
    """Start the query of a flow over ``frame``. ``unreadable``: files that it excludes, for the quarantine.

    Delta's own sink is some 10% faster than Python's foreachBatch, which converts batches to rows first (decision 0001).
    """
    context, folder = run.context, run.checkpoint.epoch_folder(state.epoch)
    application = run.identity.application(state.epoch)
    stream = (
        frame.writeStream.outputMode(run.mode.kind.query_mode)
        .queryName(context.query_name(run.name))
        .option("checkpointLocation", str(folder))
        .trigger(**context.query_trigger(run.name))
    )
    judged = None
    if needs_judgement(run.dataset.expectations):
        # The Delta sink may have written a batch before the first rule that needs judging was added.
        target: BatchTarget = target_of(run, query_id=query_id(folder))
        target = judged = judged_target(run, target, state.epoch)
        judged.unreadable = unreadable
        judged.one_pass = not state.state_settings
    elif not takes_streams(run) or _written_as_batch(run, folder, application):
        target = target_of(run)
    else:
        query = _start_native(run, stream, run.metadata(epoch=state.epoch), frame)
        return StartedStream(query, (str(query.id), application))
    writer = BatchWriter(
        target, application, folder, run.metadata(epoch=state.epoch),
        stateful=bool(state.state_settings), fence=context.check_lease,
    )  # fmt: skip
    query = stream.foreachBatch(writer).start()
    return StartedStream(query, (application, str(query.id)), writer, judged)


def _written_as_batch(run: FlowRun, folder: Place, application: str) -> bool:
    """Whether the planned batch is in the table under the id of foreachBatch, which the Delta sink would not recognize."""
    planned = last_planned_batch(folder)
    if run.dataset.sink is not None or planned is None or planned == last_committed_batch(folder):
        return False
    return has_transaction(run.table, application, planned)


def _start_native(
    run: FlowRun, stream: DataStreamWriter, metadata: dict[str, Any], frame: DataFrame
) -> StreamingQuery:
    sink = run.dataset.sink
    if sink is not None and sink.kind is not SinkKind.DELTA:
        # Data sources that the pipeline registered are looked for in the active session.
        with made_active(frame.sparkSession):
            return stream.format(sink.format).options(**sink.options).start()
    if sink is not None:
        managed = {"path", "tablename"}
        stream = stream.options(**{k: v for k, v in sink.options.items() if k.lower() not in managed})
    stream = stream.format(stream_format(run.context.spark))
    stream = stream.option("userMetadata", json.dumps(metadata)).option("mergeSchema", "true")
    if run.dataset.named_partitions:
        stream = stream.partitionBy(*run.dataset.named_partitions)
    return stream.start(str(run.delta_table))
