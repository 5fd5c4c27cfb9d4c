"""A flow that failed with an error that may pass by itself is tried again in the same update, later each time."""

from __future__ import annotations

import time
from collections.abc import Callable

from tenacity import RetryCallState, Retrying, retry_if_result, stop_after_attempt, wait_exponential
from tenacity.nap import sleep_using_event

from headwater.definitions.dataset import Dataset
from headwater.definitions.flow import Flow
from headwater.definitions.flow_settings import flow_retries
from headwater.event_log.details import FlowStatus, operation_progress
from headwater_spark.execution.outcome import FlowOutcome
from headwater_spark.execution.update_context import UpdateContext

# Those of Spark's own pipelines (spark.sql.pipelines.execution.watchdog.minRetryTime and maxTime).
FIRST_WAIT_SECONDS = 5.0
LONGEST_WAIT_SECONDS = 3600.0


def run_with_retries(
    context: UpdateContext, dataset: Dataset, flow: Flow, outcome: FlowOutcome, run: Callable[[], None]
) -> None:
    """Call ``run``, which fills in the outcome, and again while the outcome is a failure that may pass.

    How often: ``pipelines.maxFlowRetryAttempts``. A wait ends at once when the update is told to stop, and does not go on beyond
    the end of a long one.
    """
    configuration = context.pipeline.project.configuration
    spark = context.pipeline.project.spec.spark
    retries = flow_retries(
        flow.spark_conf, dataset.table_properties, configuration, spark, default=context.flow_retries
    )

    def tell(state: RetryCallState) -> None:
        wait = state.next_action.sleep if state.next_action is not None else 0.0
        message = f"{flow.name} is tried again in {wait:.0f} s ({state.attempt_number} of {retries} times)"
        what = outcome.error.what if outcome.error is not None else ""
        context.say(f"RETRY      {message}: {what.partition(chr(10))[0]}")
        context.events.emit(
            "operation_progress",
            f"{message}: {what}",
            level="WARN",
            flow=flow.name,
            dataset=dataset.name,
            details=operation_progress(
                "FLOW_RETRY", "STARTED", None, attempt=state.attempt_number, retries=retries, seconds=wait
            ),
            error=outcome.error,
        )

    def once() -> bool:
        outcome.error = None
        run()
        return may_pass(outcome) and not context.stop_requested.is_set() and not context.time_is_up

    longer = wait_exponential(multiplier=FIRST_WAIT_SECONDS, max=LONGEST_WAIT_SECONDS)

    def pause(state: RetryCallState) -> float:
        left = float("inf") if context.ends is None else max(0.0, context.ends - time.monotonic())
        return min(longer(state), left)

    Retrying(
        stop=stop_after_attempt(retries + 1),
        wait=pause,
        retry=retry_if_result(bool),
        sleep=sleep_using_event(context.stop_requested),
        before_sleep=tell,
        retry_error_callback=lambda _: False,
    )(once)


def may_pass(outcome: FlowOutcome) -> bool:
    """Whether the flow failed, and another try may not meet what it failed of."""
    return outcome.status is FlowStatus.FAILED and outcome.error is not None and outcome.error.transient
