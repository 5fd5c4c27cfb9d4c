"""The one place where rows of a flow are written to their target, for streams, bounded reads, backfills and replays.

A flow has one target, whatever its rows come from. Each write carries the flow's transaction, and the lease is checked
before each commit, to the quarantine and to the table. Decision 0154.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from pyspark.sql import DataFrame, Observation

from headwater.definitions.expectation import needs_judgement
from headwater.definitions.output_kind import OutputKind
from headwater.event_log.details import FlowStatus, flow_progress
from headwater_spark.auto_cdc.apply_changes import ChangeTarget
from headwater_spark.auto_cdc.change_metrics import change_metrics, engine_details
from headwater_spark.delta_writes.batch_commits import BatchCommit
from headwater_spark.delta_writes.batch_transaction import BatchTarget, BatchTransaction, in_own_session
from headwater_spark.delta_writes.delta_append import DeltaAppend
from headwater_spark.delta_writes.delta_merge import DeltaMerge
from headwater_spark.delta_writes.delta_replace import DeltaReplace
from headwater_spark.execution.flow_run import FlowRun
from headwater_spark.execution.targets.auto_cdc import AutoCdc
from headwater_spark.execution.targets.judged import Judged
from headwater_spark.execution.targets.spark_sink import SparkSink
from headwater_spark.execution.targets.user_function import UserFunction
from headwater_spark.execution.update_context import UpdateContext
from headwater_spark.rules.expectations import Quality, apply_expectations, read_quality
from headwater_spark.rules.judgement import mark_rows
from headwater_spark.rules.source_records import with_source


def target_of(run: FlowRun, *, keys: Sequence[str] = (), query_id: str | None = None) -> BatchTarget:
    """What takes a flow's rows, batch by batch.

    Args:
        keys: merge by these columns rows that would otherwise be appended (a backfill).
        query_id: of a streaming query, under which the Delta sink itself may have appended a batch earlier.
    """
    sink, kind = run.dataset.sink, run.mode.kind
    if sink is not None and sink.function is not None:
        return UserFunction(sink.function, run.context.pipeline.evaluation.find_table)
    if run.delta_table is None:
        assert sink is not None
        return SparkSink(sink)
    if kind is OutputKind.CHANGES:
        memory = run.context.change_memory(run.dataset.name)
        configuration = run.context.pipeline.project.configuration
        changes = ChangeTarget.of(run.table, memory, run.dataset.table_properties, configuration)
        return AutoCdc(changes, run.context.pipeline.evaluation.changes[run.name], run.flow.location)
    if run.flow.replacement is not None:
        return DeltaReplace(run.table, run.flow.replacement)
    if kind is OutputKind.UPDATE or keys:
        return DeltaMerge(run.table, run.mode.keys or tuple(keys), run.dataset.partition_columns)
    return DeltaAppend(run.delta_table, run.dataset.named_partitions, query_id=query_id)


def takes_streams(run: FlowRun) -> bool:
    """Whether Spark's own sink can write the flow's stream."""
    sink = run.dataset.sink
    return sink.function is None if sink is not None else not run.mode.kind.merges_by_key


def judged_target(run: FlowRun, target: BatchTarget, epoch: int, *, whole: bool = False) -> Judged:
    """The target behind the flow's rules. ``whole``: the rows replace all existing ones."""
    quarantine, rules = run.quarantine(epoch), run.dataset.expectations
    return Judged(target, rules, run.table, quarantine, run.context.check_lease, whole=whole)


def write_rows(
    run: FlowRun,
    rows: DataFrame,
    target: BatchTarget,
    transaction: BatchTransaction,
    epoch: int = 0,
    *,
    whole: bool = False,
) -> Quality:
    """Apply the flow's rules to rows of a bounded read and write them in one commit; returns their quality.

    Args:
        whole: they replace all existing rows.
    """
    rules = run.dataset.expectations
    # A merge takes its transaction from its session's settings.
    in_session = in_own_session if run.mode.kind.merges_by_key else lambda rows: rows
    if needs_judgement(rules):
        judged = judged_target(run, target, epoch, whole=whole)
        judged.write(in_session(mark_rows(with_source(rows), rules)), transaction)
        return judged.qualities[transaction.batch_id]
    observation = Observation()
    rows = in_session(apply_expectations(rows, rules, observation))
    with ExitStack() as stack:
        if target.passes > 1:
            rows.persist()
            stack.callback(rows.unpersist)
        write_batch(run.context, rows, target, transaction)
    return read_quality(observation.get, rules)


def write_batch(
    context: UpdateContext, rows: DataFrame, target: BatchTarget, transaction: BatchTransaction
) -> None:
    """Write rows to which the rules have been applied."""
    context.check_lease()
    target.write(rows, transaction)


def row_metrics(
    input_rows: int | None, output_rows: int | None, commit: BatchCommit | None
) -> dict[str, int | None]:
    """The metrics of a batch in the event log, with those of a merge where ``commit`` is one."""
    return {
        "num_input_rows": input_rows,
        "num_output_rows": output_rows,
        "num_upserted_rows": commit.upserted if commit else None,
        "num_deleted_rows": commit.deleted if commit else None,
        **change_metrics(commit),
    }


def count_rows(
    run: FlowRun,
    quality: Quality,
    message: str,
    version: int | None,
    commit: BatchCommit | None = None,
    **more: Any,
) -> None:
    """Add what was written in one commit to the flow's outcome, and record it.

    Args:
        commit: of a merge, which says how many rows it wrote; otherwise they are those that the rules accepted.
        more: level, epoch and batch of the record.
    """
    written = commit.rows if commit is not None else quality.accepted
    run.outcome.add_batch(
        input_rows=quality.rows,
        output_rows=written,
        dropped_rows=quality.dropped,
        quarantined_rows=quality.quarantined,
        version=version,
    )
    metrics = row_metrics(quality.rows, written, commit)
    details = flow_progress(FlowStatus.RUNNING, metrics=metrics, **engine_details(commit), version=version)
    run.emit("flow_progress", message, details=details, **more)
