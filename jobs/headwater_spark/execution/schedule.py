"""Which flow runs when: each after the flows it reads from, independent ones side by side."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from headwater.delta_log.table_history import table_exists
from headwater.errors import UpdateFailed
from headwater.event_log.details import FlowStatus
from headwater.graph.update_plan import RefreshStage, UpdatePlan
from headwater_spark.delta_writes.table_upkeep import keep_up
from headwater_spark.delta_writes.tables import clear_unborn, create_table, needs_creating_first
from headwater_spark.execution.destination import delta_table
from headwater_spark.execution.failures import flow_error
from headwater_spark.execution.flow_retries import run_with_retries
from headwater_spark.execution.flow_run import record_end, run_flow
from headwater_spark.execution.late_rows import finish_replacements
from headwater_spark.execution.outcome import FlowOutcome
from headwater_spark.execution.update_context import UpdateContext

# More at once gains nothing: they share the same executors.
MAX_CONCURRENT_FLOWS = 4


@dataclass
class _Round:
    """The state of one walk through the graph."""

    waiting: list[RefreshStage]
    running: dict[Future[None], tuple[RefreshStage, FlowOutcome]] = field(default_factory=dict)
    finished: dict[str, bool] = field(default_factory=dict)
    open_flows: dict[str, int] = field(default_factory=dict)


def run_refreshes(context: UpdateContext, plan: UpdatePlan, outcomes: dict[str, FlowOutcome]) -> None:
    """Walk the plan's refreshes once; ``outcomes`` (by flow) take the numbers. Other flows go on when one fails."""
    walk = _Round(list(plan.refreshes))
    with ThreadPoolExecutor(MAX_CONCURRENT_FLOWS, thread_name_prefix="flow") as pool:
        while walk.waiting or walk.running:
            _start_ready(context, walk, pool, outcomes)
            if not walk.running:
                continue
            done, _ = wait(walk.running, timeout=0.5, return_when=FIRST_COMPLETED)
            for future in done:
                stage, outcome = walk.running.pop(future)
                future.result()
                walk.open_flows[stage.dataset] -= 1
                good = outcome.status is FlowStatus.COMPLETED
                walk.finished[stage.dataset] = walk.finished.get(stage.dataset, True) and good


def _start_ready(
    context: UpdateContext,
    walk: _Round,
    pool: ThreadPoolExecutor,
    outcomes: dict[str, FlowOutcome],
) -> None:
    unfinished = {stage.dataset for stage in walk.waiting} | {
        d for d, left in walk.open_flows.items() if left
    }
    for stage in list(walk.waiting):
        if any(upstream in unfinished for upstream in stage.after):
            continue
        walk.waiting.remove(stage)
        broken = [upstream for upstream in stage.after if not walk.finished.get(upstream, True)]
        if broken or context.stop_requested.is_set():
            walk.finished[stage.dataset] = False
            failed = [upstream for upstream in broken if _has_failed(upstream, outcomes)]
            for flow in stage.flows:
                _leave_out(context, outcomes[flow], failed)
            continue
        walk.open_flows[stage.dataset] = len(stage.flows)
        walk.finished[stage.dataset] = True
        for future, outcome in _submit(context, stage, pool, outcomes).items():
            walk.running[future] = (stage, outcome)


def _submit(
    context: UpdateContext,
    stage: RefreshStage,
    pool: ThreadPoolExecutor,
    outcomes: dict[str, FlowOutcome],
) -> dict[Future[None], FlowOutcome]:
    dataset = context.pipeline.dataset(stage.dataset)

    def prepare() -> None:
        path = delta_table(context, dataset)
        if path is None or dataset.sink is not None:  # what a sink writes to is not the pipeline's to shape
            return
        clear_unborn(path, context.quarantine_path(dataset))
        finish_replacements(context.spark, context.pipeline.project.state_folder, dataset.name, path)
        evaluation = context.pipeline.evaluation
        schema = evaluation.table_schema(dataset)
        if table_exists(path):
            given = schema if dataset.schema is not None else None
            keep_up(context.spark, dataset, evaluation.kind_of(dataset), path, given)
        elif (
            needs_creating_first(dataset, len(stage.flows), schema) or _merges(context, stage)
        ) and not _has_written(context, stage):
            create_table(context.spark, dataset, path, schema)

    ready = pool.submit(prepare) if len(stage.flows) > 1 else None

    def run(flow_name: str) -> None:
        outcome = outcomes[flow_name]
        flow = context.pipeline.flow(flow_name)
        try:
            ready.result() if ready is not None else prepare()
        except Exception as error:
            outcome.status, outcome.error = (
                FlowStatus.FAILED,
                flow_error(flow, error, context.pipeline.evaluation.labels),
            )
        else:
            run_with_retries(
                context,
                dataset,
                flow,
                outcome,
                lambda: run_flow(context, dataset, flow, outcome, force=stage.whole),
            )
        record_end(context, outcome)

    return {pool.submit(run, flow): outcomes[flow] for flow in stage.flows}


def _merges(context: UpdateContext, stage: RefreshStage) -> bool:
    """Whether rows are merged into the table, which must be there for it."""
    modes = context.pipeline.evaluation.output_modes
    return any(modes[flow].name in ("update", "replace", "changes") for flow in stage.flows if flow in modes)


def _has_written(context: UpdateContext, stage: RefreshStage) -> bool:
    """Whether a flow has written to the table before: then its absence is for the preflight to judge."""
    return any(context.checkpoint(stage.dataset, flow).has_written() for flow in stage.flows)


def _has_failed(dataset: str, outcomes: dict[str, FlowOutcome]) -> bool:
    """Whether a dataset failed, rather than being stopped on request."""
    lost = (FlowStatus.FAILED, FlowStatus.SKIPPED)
    return any(outcome.dataset == dataset and outcome.status in lost for outcome in outcomes.values())


def _leave_out(context: UpdateContext, outcome: FlowOutcome, failed: list[str]) -> None:
    """End a flow that was not begun: skipped after a failure, else stopped with those before it."""
    if failed:
        outcome.status = FlowStatus.SKIPPED
        outcome.error = UpdateFailed(
            f"{outcome.dataset} was skipped: {', '.join(failed)}, which it reads, was not completed."
        )
    else:
        outcome.status = FlowStatus.STOPPED
    record_end(context, outcome)
