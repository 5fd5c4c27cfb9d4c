"""Flows that a table no longer has, and roles that flows no longer have: a full refresh ends them with their rows.

Decision 0211.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from headwater.checkpoints.flow_role import FlowRole, former_flows, last_role
from headwater.checkpoints.layout import FlowState
from headwater.definitions.flow import Flow
from headwater.graph.update_plan import ResetStage, may_reset
from headwater.preflight.checks import CHECKS_OF_VIEWS
from headwater_spark.execution.flow_run import FlowRun
from headwater_spark.execution.start_checks import check_flow
from headwater_spark.execution.update_context import UpdateContext


def with_former_flows(context: UpdateContext, stage: ResetStage) -> ResetStage:
    """A full refresh is one of all flows that ever filled the table: their rows go, so one that comes back must read them again.

    They come first: where a driver dies between them and the others, the next update begins the reset again.
    """
    if not stage.empty_table or not stage.flows:
        return stage
    declared = {flow.name for flow in _flows(context, stage.dataset)}
    former = former_flows(context.checkpoint(stage.dataset, stage.flows[0]), declared | set(stage.flows))
    return replace(stage, flows=(*(name for name, _, _ in former), *stage.flows))


def make_replaceable(run: FlowRun, state: FlowState | None, *, force: bool) -> None:
    """Make sure that a view may replace its table's rows: they are a view's, or a full refresh takes them away.

    Raises:
        FlowKindChanged: they are those of a stream, which its sources may no longer have.
    """
    if not (force and may_reset(run.dataset.table_properties)):
        check_flow(run, state or FlowState(), CHECKS_OF_VIEWS)
        return
    declared = {flow.name for flow in _flows(run.context, run.dataset.name)}
    own = [(run.name, run.checkpoint, state)] if state is not None else []
    for name, checkpoint, last in (*own, *former_flows(run.checkpoint, declared)):
        if last_role(checkpoint, last) not in (None, FlowRole.VIEW):
            # A position that is left behind would pass over rows that no table has any more.
            epoch = run.context.unused_epoch(run.dataset.name, name)
            # One that is lost is that of the newest epoch here.
            still = (last, FlowState()).__contains__
            checkpoint.change_state(partial(FlowState.opened, epoch=epoch), still=still)


def _flows(context: UpdateContext, dataset: str) -> list[Flow]:
    return context.pipeline.evaluation.flows_of(context.pipeline.dataset(dataset))
