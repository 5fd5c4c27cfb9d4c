"""Filling one table: its rows for the range, judged, written in one commit under an id that knows the range."""

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
from headwater.delta_log.table_history import has_transaction, head_version
from headwater_spark.backfills.event_slice import SliceSize, slice_size
from headwater_spark.backfills.held_rows import hold_rows
from headwater_spark.backfills.range_rows import RangeRows, range_rows
from headwater_spark.backfills.table_plan import TablePlan
from headwater_spark.delta_writes.batch_transaction import BatchTransaction, flow_metadata
from headwater_spark.delta_writes.delta_overwrite import DeltaOverwrite
from headwater_spark.delta_writes.sink_commits import SinkCommits
from headwater_spark.execution.flow_writer import target_of, write_batch
from headwater_spark.execution.late_rows import finish_replacements, put_back_late_rows, try_again
from headwater_spark.execution.update_context import UpdateContext

_FEWER = "fewer rows would come than leave: refused (FEWER_ROWS) unless --allow-fewer-rows is given."


def fill_table(context: UpdateContext, plan: TablePlan, arguments: BackfillArguments) -> list[TableBackfill]:
    """Fill the range of a table, or count what that would do.

    Where rows are replaced, all flows of the table are one commit; else each is one of its own.

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
    if has_transaction(table, transaction.application, 0):
        commit = SinkCommits(table, transaction.application).find(0)
        if not arguments.dry_run:
            context.check_lease()
            finish_replacements(
                context.spark, context.pipeline.project.state_folder, plan.dataset.name, table
            )
        note = f"this range was done before{f', in version {commit.version}' if commit else ''}, by the same definition. "
        return TableBackfill(
            plan.dataset.name, names, str(plan.mode), "DONE_BEFORE",
            version=head_version(table), note=note + "Nothing was written; --again does it once more.",
        )  # fmt: skip
    with ExitStack() as stack:
        parts = [stack.enter_context(range_rows(context, plan, flow)) for flow in flows]
        seen = [part.position.table_version for part in parts if part.position is not None]
        held = slice_size(context.spark, table, plan.condition, min(seen, default=None))
        rows = sum(part.quality.rows for part in parts)
        kept = sum(part.quality.kept for part in parts)
        _check_count(plan, kept, held, arguments)
        replaced = held.rows if plan.mode is BackfillMode.REPLACE_WHERE else 0
        report = TableBackfill(
            plan.dataset.name,
            names,
            str(plan.mode),
            "PLANNED",
            rows,
            kept,
            sum(part.quality.dropped for part in parts),
            sum(part.quality.quarantined for part in parts),
            replaced,
            _sum(part.source_bytes for part in parts),
            held.file_bytes if replaced else 0,
            round(held.bytes_a_row * kept),
        )
        if arguments.dry_run:
            fewer = kept < replaced and not arguments.allow_fewer_rows
            return replace(report, note=_FEWER if fewer else "")
        for part in parts:
            hold_rows(plan, part, transaction)
        known = {
            name: p.position.table_version for p in parts if p.position for name in p.position.applications
        }
        _write(context, plan, parts, transaction, known)
    return replace(report, state="COMPLETED", output_bytes=0, version=head_version(table))


def _check_count(plan: TablePlan, kept: int, held: SliceSize, arguments: BackfillArguments) -> None:
    name = plan.dataset.name
    if plan.mode is BackfillMode.APPEND and held.rows:
        raise RangeAlreadyWritten(
            f"{name!r} has {held.rows} rows of this range: appended, they would be there twice.",
            where=plan.dataset.location,
            remedy="Give --mode replace-where, or --mode merge with --keys.",
        )
    if plan.mode is BackfillMode.REPLACE_WHERE and kept < held.rows and not arguments.allow_fewer_rows:
        if arguments.dry_run:
            return
        raise FewerRows(
            f"{name!r} has {held.rows} rows of this range, and its definition gives {kept} now. Sources that no longer hold all that "
            "they once gave (retention, archived files) look like this.",
            where=plan.dataset.location,
            remedy="Look with --dry-run. Where fewer rows are meant, give --allow-fewer-rows.",
        )


def _transaction(
    context: UpdateContext, plan: TablePlan, names: str, arguments: BackfillArguments
) -> BatchTransaction:
    """The identity of a range: the same for a retry, another for another range, mode or definition."""
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


@try_again
def _write(
    context: UpdateContext,
    plan: TablePlan,
    parts: Sequence[RangeRows],
    transaction: BatchTransaction,
    known: Mapping[str, int],
) -> None:
    """Commit the rows; where Delta says that another writer came between, the same rows are tried again."""
    if plan.mode is BackfillMode.REPLACE_WHERE:
        _replace(context, plan, parts, transaction, known)
        return
    (part,) = parts
    if plan.keys:
        _check_keys(part.kept, plan.keys, plan)
    write_batch(context, part.kept, target_of(part.run, keys=plan.keys), transaction)


def _replace(
    context: UpdateContext,
    plan: TablePlan,
    parts: Sequence[RangeRows],
    transaction: BatchTransaction,
    known: Mapping[str, int],
) -> None:
    assert plan.condition is not None
    pending = PendingReplacement(
        plan.dataset.name, transaction.application, plan.condition, transaction.user_metadata, known
    )
    table = context.table_path(plan.dataset)
    rows = reduce(
        lambda one, other: one.unionByName(other, allowMissingColumns=True), [p.kept for p in parts]
    )
    target = DeltaOverwrite(table, plan.dataset.partition_columns, plan.condition)
    state = context.pipeline.project.state_folder
    with pending.written_down(state):
        write_batch(context, rows, target, transaction)
        put_back_late_rows(context.spark, state, table, pending)


def _check_keys(rows: DataFrame, keys: Sequence[str], plan: TablePlan) -> None:
    columns = [F.col("`" + key.replace("`", "``") + "`") for key in keys]
    twice = rows.groupBy(*columns).count().where("count > 1").limit(1).collect()
    if twice:
        shown = ", ".join(f"{key}={twice[0][key]!r}" for key in keys)
        raise DuplicateKey(
            f"The range gives {twice[0]['count']} rows of {plan.dataset.name!r} with one key ({shown}); nothing was written.",
            where=plan.dataset.location,
            remedy="Give --keys that tell all rows apart, or replace rows by event time.",
        )


def _sum(sizes: Any) -> int | None:
    known = [size for size in sizes if size is not None]
    return sum(known) if known else None
