"""A backfill from the command's arguments to its report: docs/backfills.md."""

from __future__ import annotations

import time
import uuid
from contextlib import ExitStack
from dataclasses import asdict, replace
from datetime import timedelta

from headwater.checkpoints.table_move import refuse_old_names, refuse_unfinished
from headwater.contract.backfill_arguments import BackfillArguments
from headwater.contract.backfill_report import BackfillReport, TableBackfill
from headwater.definitions.dataset import Dataset
from headwater.errors import HeadwaterError
from headwater.event_log.details import operation_progress, user_action
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.spelled_names import known_name
from headwater.graph.table_owners import refuse_foreign_tables
from headwater.graph.table_places import refuse_nested_on_disk
from headwater_spark.backfills.table_backfill import fill_table
from headwater_spark.backfills.table_plan import TablePlan, plan_table
from headwater_spark.execution.failures import flow_error
from headwater_spark.execution.live_context import live_context
from headwater_spark.execution.update_context import UpdateContext
from headwater_spark.execution.update_records import user_name

# How long a backfill started by Airflow waits for an update to end, where it can't run beside one.
_PATIENCE = timedelta(minutes=10)


def run_backfill(project: PipelineProject, arguments: BackfillArguments) -> BackfillReport:
    """Fill a range of tables from their definitions; each table is one commit, and a second run writes nothing.

    Raises:
        UsageError, InvalidPipeline: the command or the definition is wrong; nothing was written.
        RefusedForSafety: it would lose or double rows; nothing was written.
        UpdateFailed: a table failed; those before it are done, and the next attempt skips them.
    """
    started = time.monotonic()
    backfill_id = str(uuid.uuid4())
    assert arguments.chosen is not None
    with live_context(project, backfill_id, arguments.request_id) as context:
        datasets = [stored_dataset(context, name) for name in arguments.tables]
        plans = [plan_table(context, dataset, arguments) for dataset in datasets]
        tables = tuple(table for plan in plans for table in _fill(context, plan, arguments))
    state = "PLANNED" if arguments.dry_run else "COMPLETED"
    description = f"{arguments.chosen}{' (dry run)' if arguments.dry_run else ''}"
    seconds = time.monotonic() - started
    return BackfillReport(backfill_id, state, arguments.chosen.as_dict(), description, tables, seconds)


def stored_dataset(context: UpdateContext, name: str) -> Dataset:
    """The table of this name; raises UnknownDataset with the nearest one."""
    datasets = {d.name: d for d in context.pipeline.registry.datasets() if d.stored}
    return datasets[known_name(context.pipeline.manifest, name, datasets, "table")]


def _fill(context: UpdateContext, plan: TablePlan, arguments: BackfillArguments) -> list[TableBackfill]:
    """One table, with its records in the event log; a dry run leaves none."""
    state_folder = context.pipeline.project.state_folder
    refuse_unfinished(state_folder)
    refuse_old_names(state_folder, {plan.dataset.name: plan.dataset.location})
    refuse_foreign_tables(context.pipeline.project, context.pipeline.manifest, [plan.dataset.name])
    refuse_nested_on_disk(context.pipeline.project, context.pipeline.manifest, [plan.dataset.name])
    with ExitStack() as stack:
        if not arguments.dry_run:
            _record_start(context, plan, arguments)
            if plan.waits:
                wait = _PATIENCE if arguments.request_id is not None else timedelta(0)
                lease = context.pipeline.project.lease(f"backfill-{context.update_id}", wait=wait)
                context = replace(context, lease=stack.enter_context(lease))
        try:
            tables = fill_table(context, plan, arguments)
        except Exception as error:
            failure = error if isinstance(error, HeadwaterError) else flow_error(
                plan.flows[0], error, context.pipeline.evaluation.labels
            )  # fmt: skip
            if not arguments.dry_run:
                _record_failure(context, plan, failure)
            raise failure from None
    if not arguments.dry_run:
        for table in tables:
            _record_end(context, plan, table)
    return tables


def _record_start(context: UpdateContext, plan: TablePlan, arguments: BackfillArguments) -> None:
    details = {"range": plan.chosen.as_dict(), "mode": str(plan.mode), "again": arguments.again}
    context.say(f"BACKFILL   {plan.dataset.name}: {plan.chosen}, {plan.mode}")
    context.events.emit(
        "user_action",
        f"{user_name()} started a backfill of {plan.dataset.name}: {plan.chosen}, {plan.mode}.",
        dataset=plan.dataset.name,
        details=user_action("BACKFILL", user_name(), backfill_id=context.update_id, **details),
    )


def _record_end(context: UpdateContext, plan: TablePlan, table: TableBackfill) -> None:
    result = "was done before; nothing was written"
    if table.state == "COMPLETED":
        result = f"wrote {table.output_rows} rows in place of {table.replaced_rows}"
    context.say(f"{table.state:<9}  {table.dataset}: {result}", flow=table.flow)
    details = operation_progress("BACKFILL", "COMPLETED", None, range=plan.chosen.as_dict(), **asdict(table))
    message = f"The backfill of {table.dataset} ({plan.chosen}) {result}."
    context.events.emit(
        "operation_progress", message, flow=table.flow, dataset=table.dataset, details=details
    )


def _record_failure(context: UpdateContext, plan: TablePlan, error: HeadwaterError) -> None:
    details = {"range": plan.chosen.as_dict(), "mode": str(plan.mode)}
    context.events.emit(
        "operation_progress",
        f"The backfill of {plan.dataset.name} failed: {error.what}",
        level="ERROR",
        dataset=plan.dataset.name,
        details=operation_progress("BACKFILL", "FAILED", None, **details),
        error=error,
    )
