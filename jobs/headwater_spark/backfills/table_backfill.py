"""Fill one table: its rows for the range, judged, written in one commit whose id is derived from the range."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headwater.backfills.backfill_range import BackfillMode
from headwater.backfills.conditions import FewerRows, RangeAlreadyWritten
from headwater.checkpoints.pending_replacement import PendingReplacement
from headwater.contract.backfill_arguments import BackfillArguments
from headwater.contract.backfill_report import TableBackfill
from headwater.definitions.change_conditions import DuplicateKey
from headwater.delta_log.table_history import head_version
from headwater_spark.backfills.event_slice import SliceSize, slice_size
from headwater_spark.backfills.held_rows import hold_rows
from headwater_spark.backfills.range_rows import RangeRows, range_rows
from headwater_spark.backfills.table_plan import TablePlan
from headwater_spark.delta_writes.batch_commits import BatchCommits
from headwater_spark.delta_writes.batch_transaction import BatchTransaction, flow_metadata
from headwater_spark.delta_writes.delta_overwrite import DeltaOverwrite
from headwater_spark.execution.flow_writer import target_of, write_batch
from headwater_spark.execution.late_rows import finish_replacements, put_back_late_rows, retry_conflicts
from headwater_spark.execution.update_context import UpdateContext
from headwater_spark.plans.names import quoted

_FEWER = "fewer rows would be written than removed: refused (FEWER_ROWS) unless --allow-fewer-rows is given."


def fill_table(context: UpdateContext, plan: TablePlan, arguments: BackfillArguments) -> list[TableBackfill]:
    """Fill the range of a table, or count what that would do.

    Where rows are replaced, all flows of the table share one commit; otherwise each flow has its own.

    Raises:
        RefusedForSafety: rows would be lost or doubled; nothing was written.
        What Spark throws, for ``flow_error`` to name.
    """
    if plan.mode is BackfillMode.REPLACE_WHERE:
        return [_fill(context, plan, plan.flows, arguments)]
    return [_fill(context, plan, (flow,), arguments) for flow in plan.flows if not flow.once]


def _fill(context: UpdateContext, plan: TablePlan, flows: Any, arguments: BackfillArguments) -> TableBackfill:
    table = context.table_path(plan.dataset)
    names = ", ".join(flow.name for flow in flows)
    transaction = _transaction(context, plan, names, arguments)
    if transaction.is_in(table):
        return _done_before(context, plan, names, transaction, arguments)
    with ExitStack() as stack:
        parts = [stack.enter_context(range_rows(context, plan, flow)) for flow in flows]
        positions = [part.position for part in parts if part.position is not None]
        oldest = min((position.table_version for position in positions), default=None)
        existing = slice_size(context.spark, table, plan.condition, oldest)
        report = _planned(plan, names, parts, existing)
        _check_count(plan, report.output_rows, existing, arguments)
        if arguments.dry_run:
            fewer = report.output_rows < report.replaced_rows and not arguments.allow_fewer_rows
            return replace(report, note=_FEWER if fewer else "")
        for part in parts:
            hold_rows(plan, part, transaction)
        versions = {name: each.table_version for each in positions for name in each.applications}
        _write(context, plan, parts, transaction, versions)
    return replace(report, state="COMPLETED", output_bytes=0, version=head_version(table))


def _done_before(
    context: UpdateContext,
    plan: TablePlan,
    names: str,
    transaction: BatchTransaction,
    arguments: BackfillArguments,
) -> TableBackfill:
    """The report of a range that the table already has; what a killed backfill left unfinished is finished."""
    table, name = context.table_path(plan.dataset), plan.dataset.name
    commit = BatchCommits(table, transaction.application).find(0)
    if not arguments.dry_run:
        context.check_lease()
        finish_replacements(context.spark, context.pipeline.project.state_folder, name, table)
    note = f"this range was done before{f', in version {commit.version}' if commit else ''}, by the same definition. "
    return TableBackfill(
        names, name, "DONE_BEFORE", mode=str(plan.mode),
        version=head_version(table), note=note + "Nothing was written; --again does it once more.",
    )  # fmt: skip


def _planned(plan: TablePlan, names: str, parts: Sequence[RangeRows], existing: SliceSize) -> TableBackfill:
    """The counts of a backfill that is about to be written."""
    accepted = sum(part.quality.accepted for part in parts)
    replaced = existing.rows if plan.mode is BackfillMode.REPLACE_WHERE else 0
    sizes = [part.source_bytes for part in parts if part.source_bytes is not None]
    return TableBackfill(
        names,
        plan.dataset.name,
        "PLANNED",
        mode=str(plan.mode),
        input_rows=sum(part.quality.rows for part in parts),
        output_rows=accepted,
        dropped_rows=sum(part.quality.dropped for part in parts),
        quarantined_rows=sum(part.quality.quarantined for part in parts),
        replaced_rows=replaced,
        source_bytes=sum(sizes) if sizes else None,
        replaced_bytes=existing.file_bytes if replaced else 0,
        output_bytes=round(existing.bytes_a_row * accepted),
    )


def _check_count(plan: TablePlan, accepted: int, existing: SliceSize, arguments: BackfillArguments) -> None:
    name = plan.dataset.name
    if plan.mode is BackfillMode.APPEND and existing.rows:
        raise RangeAlreadyWritten(
            f"{name!r} has {existing.rows} rows of this range: appended, they would be there twice.",
            where=plan.dataset.location,
            remedy="Give --mode replace-where, or --mode merge with --keys.",
        )
    fewer = plan.mode is BackfillMode.REPLACE_WHERE and accepted < existing.rows
    if fewer and not (arguments.allow_fewer_rows or arguments.dry_run):
        raise FewerRows(
            f"{name!r} has {existing.rows} rows of this range, and its definition gives {accepted} now. A source that has lost data "
            "since (retention, archived files) may be the cause.",
            where=plan.dataset.location,
            remedy="Check with --dry-run. If fewer rows are intended, give --allow-fewer-rows.",
        )


def _transaction(
    context: UpdateContext, plan: TablePlan, names: str, arguments: BackfillArguments
) -> BatchTransaction:
    """The identity of a range: the same for a retry, different for another range, mode or definition."""
    project = context.pipeline.project
    again = (arguments.request_id or str(uuid.uuid4())) if arguments.again else ""
    definition = context.pipeline.manifest.definition_hash
    parts = [names, plan.chosen.key, str(plan.mode), ",".join(plan.keys), definition, again]
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]
    metadata = flow_metadata(
        project.pipeline_id, names, backfill=context.update_id, request=arguments.request_id,
        range=plan.chosen.as_dict(), mode=str(plan.mode),
    )  # fmt: skip
    application = f"{project.pipeline_id}.{plan.dataset.name}@backfill-{digest}"
    return BatchTransaction(application, 0, json.dumps(metadata))


@retry_conflicts
def _write(
    context: UpdateContext,
    plan: TablePlan,
    parts: Sequence[RangeRows],
    transaction: BatchTransaction,
    versions: Mapping[str, int],
) -> None:
    """Commit the rows, and retry where Delta reports a conflict with another writer.

    ``versions``: by the id that a stream commits under, the version up to which the backfill saw its rows.
    """
    if plan.mode is BackfillMode.REPLACE_WHERE:
        _replace(context, plan, parts, transaction, versions)
        return
    (part,) = parts
    if plan.keys:
        _check_keys(part.accepted, plan.keys, plan)
    write_batch(context, part.accepted, target_of(part.run, keys=plan.keys), transaction)


def _replace(
    context: UpdateContext,
    plan: TablePlan,
    parts: Sequence[RangeRows],
    transaction: BatchTransaction,
    versions: Mapping[str, int],
) -> None:
    assert plan.condition is not None
    pending = PendingReplacement(
        plan.dataset.name, transaction.application, plan.condition, transaction.user_metadata, versions
    )
    table = context.table_path(plan.dataset)
    rows = reduce(
        lambda left, right: left.unionByName(right, allowMissingColumns=True), [p.accepted for p in parts]
    )
    target = DeltaOverwrite(table, plan.dataset.partition_columns, plan.condition)
    state = context.pipeline.project.state_folder
    with pending.written_down(state):
        write_batch(context, rows, target, transaction)
        put_back_late_rows(context.spark, state, table, pending)


def _check_keys(rows: DataFrame, keys: Sequence[str], plan: TablePlan) -> None:
    columns = [F.col(quoted(key)) for key in keys]
    for duplicate in rows.groupBy(*columns).count().where("count > 1").limit(1).collect():
        key = ", ".join(f"{name}={duplicate[name]!r}" for name in keys)
        raise DuplicateKey(
            f"The range gives {duplicate['count']} rows of {plan.dataset.name!r} with one key ({key}); nothing was written.",
            where=plan.dataset.location,
            remedy="Give --keys that identify each row, or replace rows by event time.",
        )
