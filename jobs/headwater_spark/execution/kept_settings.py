"""The settings that a flow's state is kept with: what else is asked for later is not done in silence."""

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


def kept_settings(run: FlowRun, state: FlowState) -> dict[str, str]:
    """The settings that the flow's state was, or will be, laid down with; empty where it keeps none.

    Where somebody asks for others than those that stand, it is said and recorded: Spark takes the old ones and is silent.
    """
    context = run.context
    if not is_stateful(context.pipeline.evaluation.frames[run.name]):
        return {}
    own = context.pipeline.session.conf.get(PARTITIONS)
    # A number that follows from the machine was asked for by nobody.
    by_source = {PARTITIONS: own} if own != context.spark.conf.get(PARTITIONS) else {}
    given = {
        **context.pipeline.project.spec.spark,
        **context.pipeline.project.configuration,
        **by_source,
        **run.flow.spark_conf,
    }
    kept = state_settings(
        state.state_settings, {PARTITIONS: given.get(PARTITIONS) or own, PROVIDER: given.get(PROVIDER)}
    )
    for key, asked in overruled(kept, given).items():
        _record_kept(run, key, kept[key], asked)
    return kept


def _record_kept(run: FlowRun, key: str, kept: str, asked: str) -> None:
    remedy = (
        f"run PIPELINE_DIR --reset-checkpoint {run.name}"
        if run.dataset.sink is not None
        else f"run PIPELINE_DIR --full-refresh {run.dataset.name}"
    )
    message = (
        f"The state of {run.name!r} was laid down with {key}={kept}, which stands; {asked} holds for state that is laid down "
        f"anew: headwater {remedy}"
    )
    run.context.say(f"KEPT       {message}", flow=run.name)
    run.emit(
        "operation_progress",
        message,
        level="WARN",
        details=operation_progress(
            "STATE_SETTING_KEPT", "COMPLETED", None, setting=key, kept=kept, asked=asked
        ),
    )
