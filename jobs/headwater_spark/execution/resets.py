"""Full refreshes and resets: first the intent, then the rows, then the new epoch, so that a crash can be resumed anywhere."""

from __future__ import annotations

import json

from headwater.checkpoints.layout import FlowState
from headwater.definitions.dataset import Dataset, quarantine_folder
from headwater.errors import CheckpointUnreadable
from headwater.graph.update_plan import ResetStage, UpdatePlan
from headwater.quarantine.table import is_quarantine
from headwater.storage.place import located
from headwater.storage.walking import remove_tree
from headwater_spark.delta_writes.retired_epochs import ids_before, retire
from headwater_spark.delta_writes.tables import delete_rows, empty_table
from headwater_spark.execution.former_flows import with_former_flows
from headwater_spark.execution.update_context import UpdateContext


def run_resets(context: UpdateContext, plan: UpdatePlan) -> None:
    """Carry out the plan's resets, after those that an earlier update began and did not finish.

    All intents are recorded before the first table is emptied, readers before what they read: a stream that was to be
    reset with its emptied source, but was not, could never continue.
    """
    context.check_lease()
    begun = (*_unfinished(context, plan), *plan.resets)
    stages = [with_former_flows(context, stage) for stage in begun]
    order = [stage.dataset for stage in plan.refreshes]
    for stage in sorted(stages, key=lambda stage: order.index(stage.dataset), reverse=True):
        _intend(context, stage)
    for stage in stages:
        context.check_lease()
        _reset(context, stage)


def _unfinished(context: UpdateContext, plan: UpdatePlan) -> list[ResetStage]:
    planned = {stage.dataset for stage in plan.resets}
    unfinished = []
    for refresh in plan.refreshes:
        states = {flow: _state(context, refresh.dataset, flow) for flow in refresh.flows}
        pending = tuple(
            flow for flow, state in states.items() if state is not None and state.pending_epoch is not None
        )
        if pending and refresh.dataset not in planned:
            emptied = any(state is not None and state.pending_empties_table for state in states.values())
            unfinished.append(ResetStage(refresh.dataset, refresh.flows if emptied else pending, emptied))
    return unfinished


def _state(context: UpdateContext, dataset: str, flow: str) -> FlowState | None:
    try:
        return context.checkpoint(dataset, flow).read_state()
    except CheckpointUnreadable:
        return None  # the flow is refused when it starts; the others go on


def _intend(context: UpdateContext, stage: ResetStage) -> None:
    for flow in stage.flows:
        checkpoint = context.checkpoint(stage.dataset, flow)
        state = _state(context, stage.dataset, flow)
        pending = state.pending_epoch if state else None
        if pending is None:
            pending = context.unused_epoch(stage.dataset, flow)
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
        # First: what a stale driver still commits before this is deleted with the rest.
        _retire(context, stage)
        empty_table(context.spark, dataset, context.table_path(dataset), schema, json.dumps(metadata))
        _empty_quarantine(context, dataset, json.dumps(metadata))
        # Sequences and tombstones of rows that no longer exist.
        remove_tree(context.change_memory(dataset.name), ignore_errors=True)
    for checkpoint in checkpoints:
        checkpoint.change_state(
            lambda state: state.opened(state.pending_epoch or 0),
            # A driver that stood still may find that another one has ended the reset, and gone on.
            still=lambda state: state.pending_epoch is not None,
        )
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
    """Its rows are read again with all others, and judged by the current rules. Also where no rule quarantines any longer."""
    location = dataset.table_location(context.pipeline.project.pipeline_id)
    path = located(context.pipeline.project.warehouse, quarantine_folder(str(location)))
    if is_quarantine(path):
        delete_rows(context.spark, path, metadata)
