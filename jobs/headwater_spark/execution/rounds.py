"""The further rounds of a long update: each flow looks for new data at its own interval, always between two batches.

Decision 0009.
Decision 0147.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import replace

from headwater.definitions.flow_settings import trigger_interval
from headwater.definitions.trigger import ProcessingTime
from headwater.event_log.details import FlowStatus
from headwater.graph.update_plan import RefreshStage, UpdatePlan
from headwater_spark.execution.outcome import FlowOutcome
from headwater_spark.execution.schedule import FAILURES, leave_out, run_refreshes
from headwater_spark.execution.update_context import UpdateContext


def more_rounds(
    context: UpdateContext,
    plan: UpdatePlan,
    outcomes: dict[str, FlowOutcome],
    trigger: ProcessingTime,
    started: float,
) -> None:
    """Run rounds until the time is up, no flow is left that could run, or a stop is requested.

    A flow that failed (after its retries) is not run again, nor is what reads its table; the others continue. A flow's interval
    is its nearest ``pipelines.trigger.interval``, or else the ``processing_time`` of the trigger.

    Args:
        started: when the first round began, of ``time.monotonic``.
    """
    ends = started + trigger.run_for.total_seconds()
    intervals = flow_intervals(context, plan, trigger)
    next_runs = {flow: started + interval for flow, interval in intervals.items()}
    while True:
        for flow, failed in flows_out(plan, outcomes).items():
            is_new = next_runs.pop(flow, None) is not None
            if is_new and failed and outcomes[flow].status is FlowStatus.COMPLETED:
                leave_out(context, outcomes[flow], failed)
        if not next_runs:
            return
        following, now = min(next_runs.values()), time.monotonic()
        if max(following, now) >= ends or context.stop_requested.wait(max(0.0, following - now)):
            return
        now = time.monotonic()
        flows = {flow for flow, moment in next_runs.items() if moment <= now}
        for flow in flows:
            # A round that took longer than the interval is followed by one round, not by all that were missed.
            due = next_runs[flow] + intervals[flow]
            next_runs[flow] = due if due > now else now + intervals[flow]
        run_refreshes(context, of_flows(plan, flows), outcomes)


def flows_out(plan: UpdatePlan, outcomes: Mapping[str, FlowOutcome]) -> dict[str, list[str]]:
    """The flows that can't continue, each with the incomplete datasets that it reads, or flows that it waits for (none: it failed)."""
    stopped: dict[str, list[str]] = {}
    incomplete: set[str] = set()
    for stage in plan.refreshes:  # each comes after what it reads
        upstream = [name for name in stage.after if name in incomplete]
        failed = [flow for flow in stage.flows if outcomes[flow].status in FAILURES]
        stopped |= dict.fromkeys(stage.flows if upstream else failed, upstream)
        if upstream or failed:
            incomplete.add(stage.dataset)
        stopped |= _waiting(stage, stopped)
    return stopped


def _waiting(stage: RefreshStage, stopped: Collection[str]) -> dict[str, list[str]]:
    """The flows of a stage that wait, through others too, for flows that can't continue."""
    waiting: dict[str, list[str]] = {}
    for _ in stage.flows if stage.waits else ():
        for flow in stage.flows:
            lost = [name for name in stage.before(flow) if name in stopped or name in waiting]
            if lost and flow not in stopped:
                waiting[flow] = lost
    return waiting


def flow_intervals(context: UpdateContext, plan: UpdatePlan, trigger: ProcessingTime) -> dict[str, float]:
    """The seconds between two runs of each flow."""
    project = context.pipeline.project
    intervals = {}
    for stage in plan.refreshes:
        properties = context.pipeline.dataset(stage.dataset).table_properties
        for name in stage.flows:
            conf = context.pipeline.flow(name).spark_conf
            interval = trigger_interval(conf, properties, project.configuration, project.spec.spark)
            intervals[name] = (interval or trigger.interval).total_seconds()
    return intervals


def of_flows(plan: UpdatePlan, flows: set[str]) -> UpdatePlan:
    """The refreshes of some flows."""
    stages = (
        replace(stage, flows=tuple(flow for flow in stage.flows if flow in flows), whole=False)
        for stage in plan.refreshes
    )
    return UpdatePlan((), tuple(stage for stage in stages if stage.flows), plan.excluded)
