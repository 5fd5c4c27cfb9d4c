"""The further rounds of a long update: each flow looks for new data at its own interval, always between two batches."""

from __future__ import annotations

import time
from dataclasses import replace

from headwater.definitions.flow_settings import trigger_interval
from headwater.definitions.trigger import ProcessingTime
from headwater.event_log.details import FlowStatus
from headwater.graph.update_plan import UpdatePlan
from headwater_spark.execution.outcome import FlowOutcome
from headwater_spark.execution.schedule import run_refreshes
from headwater_spark.execution.update_context import UpdateContext


def more_rounds(
    context: UpdateContext,
    plan: UpdatePlan,
    outcomes: dict[str, FlowOutcome],
    trigger: ProcessingTime,
    started: float,
) -> None:
    """Look again until the time is up, a flow has failed, or a stop is asked for.

    A flow looks every ``pipelines.trigger.interval`` that stands nearest to it, else every ``processing_time`` of the trigger.

    Args:
        started: when the first round began, of ``time.monotonic``.
    """
    ends = started + trigger.run_for.total_seconds()
    intervals = flow_intervals(context, plan, trigger)
    due = {flow: started + interval for flow, interval in intervals.items()}
    while due and not any(o.status is FlowStatus.FAILED for o in outcomes.values()):
        following, now = min(due.values()), time.monotonic()
        if max(following, now) >= ends or context.stop_requested.wait(max(0.0, following - now)):
            return
        now = time.monotonic()
        flows = {flow for flow, moment in due.items() if moment <= now}
        for flow in flows:
            # A round that took longer than the interval is followed by one, not by all that were missed.
            due[flow] = max(due[flow] + intervals[flow], now)
        run_refreshes(context, of_flows(plan, flows), outcomes)


def flow_intervals(context: UpdateContext, plan: UpdatePlan, trigger: ProcessingTime) -> dict[str, float]:
    """The seconds from one look of each flow to the next."""
    project = context.pipeline.project
    found = {}
    for stage in plan.refreshes:
        properties = context.pipeline.dataset(stage.dataset).table_properties
        for name in stage.flows:
            conf = context.pipeline.flow(name).spark_conf
            given = trigger_interval(conf, properties, project.configuration, project.spec.spark)
            found[name] = (given or trigger.interval).total_seconds()
    return found


def of_flows(plan: UpdatePlan, flows: set[str]) -> UpdatePlan:
    """The refreshes of some flows."""
    stages = (
        replace(stage, flows=tuple(flow for flow in stage.flows if flow in flows), whole=False)
        for stage in plan.refreshes
    )
    return UpdatePlan((), tuple(stage for stage in stages if stage.flows), plan.excluded)
