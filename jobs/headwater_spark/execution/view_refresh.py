"""Recompute a materialized view, or its part that is to be replaced, as one commit: readers see the rows before or the rows after."""

from __future__ import annotations

import json

from headwater.checkpoints.layout import FlowState
from headwater.delta_log.table_history import head_version, readable_table_id, table_exists
from headwater.event_log.details import FlowStatus, planning_information
from headwater.graph.manifest import FlowEntry
from headwater.metrics.fingerprint import source_fingerprint, source_key
from headwater_spark.delta_writes.batch_commits import quality_details
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.delta_writes.delta_overwrite import DeltaOverwrite
from headwater_spark.delta_writes.table_upkeep import keep_clustering
from headwater_spark.execution.flow_run import FlowRun
from headwater_spark.execution.flow_writer import count_rows, write_rows
from headwater_spark.execution.update_context import UpdateContext
from headwater_spark.resolution.replaced_slice import slice_condition
from headwater_spark.rules.expectations import Quality


def refresh_view(run: FlowRun, *, force: bool = False) -> None:
    """Bring a materialized view up to date; it is left alone where no source has moved since its last refresh.

    Args:
        force: recompute it whether or not anything moved, and all of it (a full refresh).
    """
    # Taken before the read: what arrives meanwhile is read again by the next update, never missed.
    now = fingerprints(run.context, run.entry)
    definition = run.context.pipeline.manifest.definition_hash
    state, sink = run.checkpoint.read_state(), readable_table_id(run.table)
    if not force and sink is not None and _is_fresh(run, state, sink, now):
        _plan(run, "MAINTENANCE_TYPE_NO_OP", "no source has moved since the last refresh")
        run.outcome.version = head_version(run.table)
        run.outcome.status = FlowStatus.COMPLETED
        return
    if run.flow.replace_where is None or force:
        _plan(run, "MAINTENANCE_TYPE_COMPLETE_RECOMPUTE", "views are recomputed whole")
    else:
        _plan(run, "MAINTENANCE_TYPE_PARTITION_OVERWRITE", "replace_where names the part to recompute")
    run.checkpoint.update_state(completed=False)
    with run.settings():
        quality = _write(run, whole=force)
    keep_clustering(run.context.spark, run.dataset, run.table)
    run.context.check_lease()
    message = f"{run.dataset.name} was recomputed: {quality.accepted} rows, {quality.dropped} dropped."
    count_rows(run, quality, message, head_version(run.table), level="METRICS")
    run.outcome.data_quality = quality_details(quality, run.dataset.name)
    run.checkpoint.update_state(
        sink_id=readable_table_id(run.table),
        completed=True,
        definition_hash=definition,
        input_versions=now or {},
    )
    run.outcome.status = FlowStatus.COMPLETED


def _is_fresh(run: FlowRun, state: FlowState | None, sink: str, now: dict[str, str] | None) -> bool:
    """Whether the view was recomputed by this definition, and no source has moved since."""
    return (
        state is not None and state.completed and state.sink_id == sink
        and state.definition_hash == run.context.pipeline.manifest.definition_hash and not run.entry.time_dependent
        and now is not None and dict(state.input_versions) == now
    )  # fmt: skip


def _plan(run: FlowRun, technique: str, reason: str) -> None:
    run.emit(
        "planning_information",
        f"{run.flow.target}: {reason}.",
        details=planning_information(technique, reason),
        maturity="EVOLVING",
    )


def _write(run: FlowRun, *, whole: bool) -> Quality:
    rows, table = run.rows(whole=whole), run.table
    in_part = run.flow.replace_where is not None and not whole and table_exists(table)
    # Delta refuses one that was under way while another driver replaced the rows: both remove the same files.
    target = DeltaOverwrite(
        table,
        run.dataset.partition_columns,
        slice_condition(rows, run.flow) if in_part else None,
        new_columns=run.dataset.schema is None,
        once=False,
    )
    metadata = json.dumps(run.metadata(update=run.context.update_id))
    # The rows that are kept out come first: a view that is new has its quarantine, and a crash between the two is redone.
    return write_rows(run, rows, target, BatchTransaction(str(table), 0, metadata), whole=True)


def fingerprints(context: UpdateContext, entry: FlowEntry) -> dict[str, str] | None:
    """What each source of a batch flow is at, None where that can't be known of one of them."""
    found: dict[str, str] = {}
    for source in entry.sources:
        fingerprint = source_fingerprint(source, context.pipeline.project.warehouse)
        if fingerprint is None:
            return None
        found[source_key(source)] = fingerprint
    return found
