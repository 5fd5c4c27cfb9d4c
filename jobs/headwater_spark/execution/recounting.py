"""Count again the rows of batches that are in their table, but whose driver died before it could record them.

Delta skips such a batch when it is repeated, and Spark then observes nothing of it. This is done only after a crash: the
normal path of a batch is Delta's own sink.

Decision 0145.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from headwater.checkpoints.batch_again import changed_files, lay_out_batch
from headwater.checkpoints.layout import FlowState
from headwater.checkpoints.offsets import last_committed_batch, last_planned_batch, query_id
from headwater.definitions.dataset import Dataset
from headwater.definitions.expectation import needs_judgement
from headwater.delta_log.table_history import has_transaction
from headwater.storage.place import Place
from headwater.storage.walking import remove_tree
from headwater_spark.execution.batch_counts import Recount
from headwater_spark.execution.failures import flow_error
from headwater_spark.execution.flow_run import FlowRun
from headwater_spark.execution.update_context import UpdateContext
from headwater_spark.rules.expectations import read_quality

# The name of the observation in a flow's query.
OBSERVATION = "headwater"
# A killed driver leaves the batches of about a second unrecorded; if the event log was lost, all batches would be.
MOST_BATCHES = 10
_TOO_MANY = f"only the last {MOST_BATCHES} batches without a record are evaluated again"
# Beside the epochs: on the same file system, so that state files can be linked.
_FOLDER = ".recount"


def recount_batches(
    run: FlowRun, state: FlowState, frame: DataFrame, unrecorded: Sequence[int]
) -> dict[int, Recount]:
    """Evaluate batches again that were written but not recorded, each over the offsets that it was planned with.

    The query runs from a copy of the checkpoint as it was before the batch, and its result goes nowhere.

    Args:
        frame: the flow's query with its rules, as it is about to be started.
        unrecorded: batches that are marked as done; one that is only planned is looked up in the table.

    Raises:
        InterruptedError: the update was told to stop; nothing is recorded then.
    """
    folder = run.checkpoint.epoch_folder(state.epoch)
    batches = [*unrecorded, *_written_only(run, state, folder)]
    recounts = {batch_id: Recount(unknown=_TOO_MANY) for batch_id in batches[:-MOST_BATCHES]}
    for batch_id in batches[-MOST_BATCHES:]:
        run.context.say(
            f"RECOUNT    {run.name}: batch {batch_id} was written by a driver that died before recording it",
            flow=run.name,
            batch=batch_id,
        )
        recounts[batch_id] = _recount(run, state, frame, batch_id)
    return recounts


def _written_only(run: FlowRun, state: FlowState, folder: Place) -> list[int]:
    """The planned batch, if it is in the table and not marked as done."""
    table, planned = run.delta_table, last_planned_batch(folder)
    if table is None or planned is None or planned == last_committed_batch(folder):
        return []
    ids = (query_id(folder), run.identity.application(state.epoch))
    return [planned] if any(name and has_transaction(table, name, planned) for name in ids) else []


def _recount(run: FlowRun, state: FlowState, frame: DataFrame, batch_id: int) -> Recount:
    checkpoint = run.checkpoint
    try:
        if changed := changed_files(checkpoint.epoch_folder(state.epoch), batch_id):
            others = f" and {len(changed) - 1} others" if len(changed) > 1 else ""
            return Recount(unknown=f"files that it read were deleted or modified: {changed[0]}{others}")
        with _laid_out(checkpoint.epoch_folder(state.epoch), batch_id, checkpoint.folder / _FOLDER) as copy:
            # A query keeps the settings it was started with, and other flows need not wait for its end.
            with run.settings(state):
                query = _start(run, frame, copy)
            _await(run.context, query)
            return _counts_of(run.dataset, state, query, batch_id)
    except InterruptedError:
        raise
    except Exception as error:
        cause = flow_error(run.flow, error, run.context.pipeline.evaluation.labels).what
        return Recount(unknown=f"the batch can't be evaluated again. {cause.partition(chr(10))[0]}")


@contextmanager
def _laid_out(checkpoint: Place, batch_id: int, copy: Place) -> Iterator[Place]:
    try:
        lay_out_batch(checkpoint, batch_id, copy)
        yield copy
    finally:
        remove_tree(copy, ignore_errors=True)


def _start(run: FlowRun, frame: DataFrame, checkpoint: Place) -> StreamingQuery:
    return (
        frame.writeStream.outputMode(run.mode.kind.query_mode)
        .queryName(f"{run.context.query_name(run.name)}.recount")
        .option("checkpointLocation", str(checkpoint))
        # The only trigger that runs a planned batch and no other.
        .trigger(once=True)
        .format("noop")
        .start()
    )


def _await(context: UpdateContext, query: StreamingQuery) -> None:
    # Half seconds work; the annotation knows whole ones only.
    while not query.awaitTermination(0.5):  # type: ignore[arg-type]
        if context.stop_requested.is_set():
            query.stop()
            raise InterruptedError("The update was told to stop while a batch was evaluated again.")


def _counts_of(dataset: Dataset, state: FlowState, query: StreamingQuery, batch_id: int) -> Recount:
    progress = next((item for item in query.recentProgress if int(item.batchId) == batch_id), None)
    if progress is None:
        return Recount(unknown="Spark did not report the batch when it was evaluated again")
    # A batch is planned only for new data, except by a query that keeps state.
    if progress.numInputRows == 0 and not state.state_settings:
        return Recount(unknown="its sources no longer have its rows")
    observed = progress.observedMetrics
    counts = observed.get(OBSERVATION)
    rules = dataset.expectations
    judged = needs_judgement(rules)
    quality = read_quality(counts.asDict(), rules) if counts is not None and not judged else None
    return Recount(int(progress.numInputRows), quality, observed)
