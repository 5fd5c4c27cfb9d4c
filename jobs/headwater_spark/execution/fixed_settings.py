"""The settings that a flow's state is created with: a later change is ignored, and reported."""

from __future__ import annotations

from headwater.checkpoints.layout import FlowState
from headwater.event_log.details import operation_progress
from headwater_spark.execution.flow_run import FlowRun
from headwater_spark.plans.stateful_queries import (
    PARTITIONS,
    PROVIDER,
    is_stateful,
    overruled,
    state_settings,
)


def fixed_settings(run: FlowRun, state: FlowState) -> dict[str, str]:
    """The settings that the flow's state was, or will be, created with; empty where it keeps no state.

    Settings that differ from these are reported and recorded: Spark silently uses the old ones.
    """
    context = run.context
    if not is_stateful(context.pipeline.evaluation.frames[run.name]):
        return {}
    current = context.pipeline.evaluation.setting(PARTITIONS)
    # A number that is only the machine's default was not configured by anyone.
    by_source = {PARTITIONS: current} if current != context.spark.conf.get(PARTITIONS) else {}
    configured = {
        **context.pipeline.project.spec.spark,
        **context.pipeline.project.configuration,
        **by_source,
        **run.flow.spark_conf,
    }
    defaults = {PARTITIONS: configured.get(PARTITIONS) or current, PROVIDER: configured.get(PROVIDER)}
    fixed = state_settings(state.state_settings, defaults)
    for key, ignored in overruled(fixed, configured).items():
        _record_ignored(run, key, fixed[key], ignored)
    return fixed


def _record_ignored(run: FlowRun, key: str, fixed: str, ignored: str) -> None:
    remedy = (
        f"run PIPELINE_DIR --reset-checkpoint {run.name}"
        if run.dataset.sink is not None
        else f"run PIPELINE_DIR --full-refresh {run.dataset.name}"
    )
    message = (
        f"The state of {run.name!r} was created with {key}={fixed}, which is kept; {ignored} applies only to new state: "
        f"headwater {remedy}"
    )
    run.context.say(f"KEPT       {message}", flow=run.name)
    run.emit(
        "operation_progress",
        message,
        level="WARN",
        details=operation_progress(
            "STATE_SETTING_KEPT", "COMPLETED", None, setting=key, kept=fixed, asked=ignored
        ),
    )
