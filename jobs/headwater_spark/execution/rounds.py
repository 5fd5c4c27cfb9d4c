"""The further rounds of a long update: each flow looks for new data at its own interval, always between two batches.

Decision 0009.
Decision 0147.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from headwater.definitions.flow_settings import trigger_interval
from headwater.definitions.trigger import ProcessingTime
from headwater.event_log.details import FlowStatus
from headwater.graph.update_plan import UpdatePlan
from headwater_spark.execution.outcome import FlowOutcome
from headwater_spark.execution.schedule import leave_out, run_refreshes
from headwater_spark.execution.update_context import UpdateContext

_LOST = (FlowStatus.FAILED, FlowStatus.SKIPPED)


def more_rounds(
    context: UpdateContext,
    plan: UpdatePlan,
    outcomes: dict[str, FlowOutcome],
    trigger: ProcessingTime,
    started: float,
) -> None:
    """Look again until the time is up, nothing is left that could, or a stop is asked for.

    A flow that failed (after the tries that its settings give it) looks no more, nor does what reads its table; the others go
    on. A flow looks every ``pipelines.trigger.interval`` that stands nearest to it, else every ``processing_time`` of the trigger.

    Args:
        started: when the first round began, of ``time.monotonic``.
    """
    ends = started + trigger.run_for.total_seconds()
    intervals = flow_intervals(context, plan, trigger)
    due = {flow: started + interval for flow, interval in intervals.items()}
    while True:
        for flow, lost in flows_out(plan, outcomes).items():
            if due.pop(flow, None) is not None and lost and outcomes[flow].status is FlowStatus.COMPLETED:
                leave_out(context, outcomes[flow], lost)
        if not due:
            return
        following, now = min(due.values()), time.monotonic()
        if max(following, now) >= ends or context.stop_requested.wait(max(0.0, following - now)):
            return
        now = time.monotonic()
        flows = {flow for flow, moment in due.items() if moment <= now}
        for flow in flows:
            # A round that took longer than the interval is followed by one, not by all that were missed.
            due[flow] = max(due[flow] + intervals[flow], now)
        run_refreshes(context, of_flows(plan, flows), outcomes)


def flows_out(plan: UpdatePlan, outcomes: Mapping[str, FlowOutcome]) -> dict[str, list[str]]:
    """The flows that can't go on, each with the datasets it reads that are not whole (none where it failed by itself)."""
    out: dict[str, list[str]] = {}
    incomplete: set[str] = set()
    for stage in plan.refreshes:  # each comes after what it reads
        lost = [name for name in stage.after if name in incomplete]
        failed = [flow for flow in stage.flows if outcomes[flow].status in _LOST]
        out |= dict.fromkeys(stage.flows if lost else failed, lost)
        if lost or failed:
            incomplete.add(stage.dataset)
    return out


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
