"""Recompute a materialized view, or its part that is to be replaced, as one commit: readers see the rows before or the rows after."""

from __future__ import annotations

import json

from pyspark.sql import DataFrame, Observation

from headwater.definitions.dataset import Dataset
from headwater.definitions.expectation import needs_judgement
from headwater.definitions.flow import Flow
from headwater.delta_log.table_history import head_version, readable_table_id, table_exists
from headwater.event_log.details import FlowStatus, flow_progress, planning_information
from headwater.graph.manifest import FlowEntry
from headwater.metrics.fingerprint import source_fingerprint, source_key
from headwater_spark.delta_writes.batch_transaction import BatchTransaction
from headwater_spark.delta_writes.sink_commits import quality_details
from headwater_spark.delta_writes.table_upkeep import keep_clustering
from headwater_spark.execution.outcome import FlowOutcome
from headwater_spark.execution.stream_start import quarantine_table
from headwater_spark.execution.update_context import UpdateContext
from headwater_spark.plans.schemas import stored_schema
from headwater_spark.resolution.replaced_slice import slice_condition
from headwater_spark.rules.expectations import Quality, apply_expectations, read_quality
from headwater_spark.rules.judgement import judged_batch, kept_rows, mark_rows
from headwater_spark.rules.source_records import with_source


def refresh_view(
    context: UpdateContext, dataset: Dataset, flow: Flow, outcome: FlowOutcome, *, force: bool = False
) -> None:
    """Bring a materialized view up to date; it is left alone where no source has moved since its last refresh.

    Args:
        force: recompute it whether or not anything moved, and all of it (a full refresh).
    """
    entry = next(item for item in context.pipeline.manifest.flows if item.name == flow.name)
    checkpoint = context.checkpoint(dataset.name, flow.name)
    # Taken before the read: what arrives meanwhile is read again by the next update, never missed.
    now = fingerprints(context, entry)
    definition = context.pipeline.manifest.source_hash
    path = context.table_path(dataset)
    state = checkpoint.read_state()
    sink = readable_table_id(path)
    if (
        not force and state is not None and state.completed and sink is not None and state.sink_id == sink
        and state.definition_hash == definition and not entry.time_dependent
        and now is not None and dict(state.input_versions) == now
    ):  # fmt: skip
        _plan(context, flow, "MAINTENANCE_TYPE_NO_OP", "no source has moved since the last refresh")
        outcome.version = head_version(path)
        outcome.status = FlowStatus.COMPLETED
        return
    if flow.replace_where is None or force:
        _plan(context, flow, "MAINTENANCE_TYPE_COMPLETE_RECOMPUTE", "views are recomputed whole")
    else:
        _plan(
            context, flow, "MAINTENANCE_TYPE_PARTITION_OVERWRITE", "replace_where names the part to recompute"
        )
    checkpoint.update_state(completed=False)
    with context.pipeline.evaluation.settings(flow):
        quality = _write(context, dataset, flow, whole=force)
    keep_clustering(context.spark, dataset, path)
    outcome.add_batch(
        input_rows=quality.rows,
        output_rows=quality.kept,
        dropped_rows=quality.dropped,
        quarantined_rows=quality.quarantined,
        version=head_version(path),
    )
    context.check_lease()
    outcome.data_quality = quality_details(quality, dataset.name)
    _record(context, dataset, flow, outcome, quality)
    checkpoint.update_state(
        sink_id=readable_table_id(path), completed=True, definition_hash=definition, input_versions=now or {}
    )
    outcome.status = FlowStatus.COMPLETED


def _plan(context: UpdateContext, flow: Flow, technique: str, reason: str) -> None:
    context.events.emit(
        "planning_information",
        f"{flow.target}: {reason}.",
        flow=flow.name,
        dataset=flow.target,
        details=planning_information(technique, reason),
        maturity="EVOLVING",
    )


def _write(context: UpdateContext, dataset: Dataset, flow: Flow, *, whole: bool) -> Quality:
    frame = context.pipeline.evaluation.evaluate(flow, whole=whole)
    for field, plain in zip(frame.schema.fields, stored_schema(frame.schema).fields, strict=True):
        if field.metadata != plain.metadata:
            frame = frame.withMetadata(field.name, plain.metadata)
    identity = context.identity(dataset.name, flow.name)
    metadata = {
        "pipeline": identity.pipeline,
        "flow": identity.flow,
        "update": context.update_id,
    }
    told = json.dumps(metadata)
    if needs_judgement(dataset.expectations):
        return _write_judged(context, dataset, flow, frame, told, whole=whole)
    observation = Observation()
    checked = apply_expectations(frame, dataset.expectations, observation)
    _overwrite(context, dataset, flow, checked, told, whole=whole)
    return read_quality(observation.get, dataset.expectations)


def _write_judged(
    context: UpdateContext, dataset: Dataset, flow: Flow, frame: DataFrame, metadata: str, *, whole: bool
) -> Quality:
    """The rows that are kept out first: a view that is new has its quarantine, and a crash between the two is redone."""
    rules, path = dataset.expectations, context.table_path(dataset)
    with judged_batch(mark_rows(with_source(frame), rules), rules) as (judged, quality):
        quarantine = quarantine_table(context, dataset, flow, 0)
        if quarantine is not None and (quality.quarantined or table_exists(quarantine.path)):
            quarantine.replace_all(judged, rules, BatchTransaction(str(path), 0, metadata))
        _overwrite(context, dataset, flow, kept_rows(judged, rules), metadata, whole=whole)
        return quality


def _overwrite(
    context: UpdateContext, dataset: Dataset, flow: Flow, rows: DataFrame, metadata: str, *, whole: bool
) -> None:
    path = context.table_path(dataset)
    writer = rows.write.format("delta").mode("overwrite").option("userMetadata", metadata)
    if flow.replace_where is not None and not whole and table_exists(path):
        # The other rows keep their columns: new ones are added, none is changed.
        writer = writer.option("replaceWhere", slice_condition(rows, flow)).option("mergeSchema", "true")
    elif dataset.schema is None:
        writer = writer.option("overwriteSchema", "true")
    if dataset.partition_columns:
        writer = writer.partitionBy(*dataset.partition_columns)
    # Delta refuses one that was under way while another driver replaced the rows: both remove the same files.
    context.check_lease()
    writer.save(str(path))


def fingerprints(context: UpdateContext, entry: FlowEntry) -> dict[str, str] | None:
    """What each source of a batch flow is at, None where that can't be known of one of them."""
    found: dict[str, str] = {}
    for source in entry.sources:
        fingerprint = source_fingerprint(source, context.pipeline.project.warehouse)
        if fingerprint is None:
            return None
        found[source_key(source)] = fingerprint
    return found


def _record(
    context: UpdateContext, dataset: Dataset, flow: Flow, outcome: FlowOutcome, quality: Quality
) -> None:
    context.events.emit(
        "flow_progress",
        f"{dataset.name} was recomputed: {quality.kept} rows, {quality.dropped} dropped.",
        level="METRICS",
        flow=flow.name,
        dataset=dataset.name,
        details=flow_progress(
            FlowStatus.RUNNING,
            metrics={"num_input_rows": quality.rows, "num_output_rows": quality.kept},
            version=outcome.version,
        ),
    )
