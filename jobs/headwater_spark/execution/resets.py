"""Full refreshes and resets: the intent first, then the rows, then the new epoch, so that a crash anywhere resumes."""

from __future__ import annotations

import json
import shutil

from headwater.checkpoints.layout import FlowState
from headwater.definitions.dataset import Dataset, quarantine_folder
from headwater.errors import CheckpointUnreadable
from headwater.graph.update_plan import ResetStage, UpdatePlan
from headwater.quarantine.table import is_quarantine
from headwater_spark.delta_writes.retired_epochs import ids_before, retire
from headwater_spark.delta_writes.tables import empty_table
from headwater_spark.execution.update_context import UpdateContext


def run_resets(context: UpdateContext, plan: UpdatePlan) -> None:
    """Carry out the plan's resets, and first those that an earlier update began and did not finish.

    All intents are written down before the first table is emptied, readers before what they read: a stream whose
    source was emptied, and which was to be reset with it, could never go on.
    """
    context.check_lease()
    stages = (*_unfinished(context, plan), *plan.resets)
    order = [stage.dataset for stage in plan.refreshes]
    for stage in sorted(stages, key=lambda stage: order.index(stage.dataset), reverse=True):
        _intend(context, stage)
    for stage in stages:
        context.check_lease()
        _reset(context, stage)


def _unfinished(context: UpdateContext, plan: UpdatePlan) -> list[ResetStage]:
    asked = {stage.dataset for stage in plan.resets}
    found = []
    for refresh in plan.refreshes:
        states = {flow: _state(context, refresh.dataset, flow) for flow in refresh.flows}
        pending = tuple(
            flow for flow, state in states.items() if state is not None and state.pending_epoch is not None
        )
        if pending and refresh.dataset not in asked:
            emptied = any(state is not None and state.pending_empties_table for state in states.values())
            found.append(ResetStage(refresh.dataset, refresh.flows if emptied else pending, emptied))
    return found


def _state(context: UpdateContext, dataset: str, flow: str) -> FlowState | None:
    try:
        return context.checkpoint(dataset, flow).read_state()
    except CheckpointUnreadable:
        return None  # the flow is refused when it starts; the others go on


def _intend(context: UpdateContext, stage: ResetStage) -> None:
    for flow in stage.flows:
        checkpoint = context.checkpoint(stage.dataset, flow)
        state = _state(context, stage.dataset, flow)
        begun = state.pending_epoch if state else None
        pending = begun if begun is not None else context.unused_epoch(stage.dataset, flow)
        checkpoint.update_state(
            pending_epoch=pending, pending_empties_table=stage.empty_table, completed=False
        )


def _reset(context: UpdateContext, stage: ResetStage) -> None:
    dataset = context.pipeline.dataset(stage.dataset)
    checkpoints = [context.checkpoint(stage.dataset, flow) for flow in stage.flows]
    if stage.empty_table and dataset.stored:
        metadata = {
            "pipeline": context.pipeline.project.pipeline_id,
            "full_refresh": stage.dataset,
            "update": context.update_id,
        }
        schema = context.pipeline.evaluation.table_schema(dataset)
        # First: what a driver of the past still commits now is taken out with the rest.
        _retire(context, stage)
        empty_table(context.spark, dataset, context.table_path(dataset), schema, json.dumps(metadata))
        _empty_quarantine(context, dataset, json.dumps(metadata))
        # Sequences and tombstones of rows that are no more.
        shutil.rmtree(context.change_memory(dataset.name), ignore_errors=True)
    for checkpoint in checkpoints:
        state = checkpoint.read_state()
        assert state is not None
        assert state.pending_epoch is not None
        checkpoint.write_state(state.opened(state.pending_epoch))
    context.events.emit(
        "user_action",
        str(stage),
        dataset=stage.dataset,
        details={
            "user_action": {"action": "RESET", "flows": list(stage.flows), "empty_table": stage.empty_table}
        },
    )


def _retire(context: UpdateContext, stage: ResetStage) -> None:
    dataset = context.pipeline.dataset(stage.dataset)
    ids: set[str] = set()
    for flow in stage.flows:
        checkpoint = context.checkpoint(stage.dataset, flow)
        state = checkpoint.read_state()
        assert state is not None
        assert state.pending_epoch is not None
        ids |= ids_before(checkpoint, context.identity(stage.dataset, flow), state.pending_epoch)
    retire(context.spark, (context.table_path(dataset), context.quarantine_path(dataset)), ids)


def _empty_quarantine(context: UpdateContext, dataset: Dataset, metadata: str) -> None:
    """Its rows are read again with all others, and judged by the rules of now. Also where no rule quarantines any more."""
    location = dataset.table_location(context.pipeline.project.pipeline_id)
    path = context.pipeline.project.warehouse / quarantine_folder(str(location))
    if is_quarantine(path):
        session = context.spark.newSession()  # the metadata of the commit is a setting
        session.conf.set("spark.databricks.delta.commitInfo.userMetadata", metadata)
        session.sql(f"DELETE FROM delta.`{path}`")  # noqa: S608 - a folder of the pipeline's own
