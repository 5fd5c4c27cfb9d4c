"""Which flow runs when: each after the flows it reads from, independent ones side by side."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from graphlib import TopologicalSorter

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


def walk(
    stages: Sequence[RefreshStage],
    run: Callable[[RefreshStage, str], bool],
    leave_out: Callable[[RefreshStage, list[str]], None],
    stopped: Callable[[], bool],
) -> None:
    """Take each stage after those that it reads from; independent ones, and the flows of one, run side by side.

    Args:
        stages: of one walk; a stage may name others before it that are not among them, and are as good as done.
        run: runs a flow of a stage, on a thread of its own; whether it was completed.
        leave_out: takes a stage that is not begun, with the datasets before it that were not completed.
        stopped: whether nothing more is to be begun.
    """
    by_name = {stage.dataset: stage for stage in stages}
    sorter = TopologicalSorter({name: set(stage.after) & set(by_name) for name, stage in by_name.items()})
    sorter.prepare()
    running: dict[Future[bool], str] = {}
    left: dict[str, int] = {}
    broken: set[str] = set()
    with ThreadPoolExecutor(MAX_CONCURRENT_FLOWS, thread_name_prefix="flow") as pool:
        while sorter.is_active():
            for name in sorted(sorter.get_ready(), key=list(by_name).index):
                stage = by_name[name]
                lost = [upstream for upstream in stage.after if upstream in broken]
                if lost or stopped():
                    broken.add(name)
                    leave_out(stage, lost)
                    sorter.done(name)
                    continue
                left[name] = len(stage.flows)
                running |= {pool.submit(run, stage, flow): name for flow in stage.flows}
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                name = running.pop(future)
                left[name] -= 1
                if not future.result():
                    broken.add(name)
                if not left[name]:
                    sorter.done(name)


def run_refreshes(context: UpdateContext, plan: UpdatePlan, outcomes: dict[str, FlowOutcome]) -> None:
    """Walk the plan's refreshes once; ``outcomes`` (by flow) take the numbers. Other flows go on when one fails."""
    prepared = {stage.dataset: _Prepared(context, stage) for stage in plan.refreshes}

    def run(stage: RefreshStage, flow: str) -> bool:
        _run(context, stage, flow, outcomes[flow], prepared[stage.dataset])
        return outcomes[flow].status is FlowStatus.COMPLETED

    def skip(stage: RefreshStage, lost: list[str]) -> None:
        failed = [upstream for upstream in lost if _has_failed(upstream, outcomes)]
        for flow in stage.flows:
            leave_out(context, outcomes[flow], failed)

    walk(plan.refreshes, run, skip, context.stop_requested.is_set)


class _Prepared:
    """The table of a stage, made ready by whichever of its flows comes first; the others wait for it."""

    def __init__(self, context: UpdateContext, stage: RefreshStage) -> None:
        self._context, self._stage = context, stage
        self._lock = threading.Lock()
        self._done = False
        self._error: Exception | None = None

    def ensure(self) -> None:
        """Return when the table is ready; raises what kept it from that, for each flow."""
        with self._lock:
            if not self._done:
                try:
                    _prepare(self._context, self._stage)
                except Exception as error:
                    self._error = error
                self._done = True
        if self._error is not None:
            raise self._error


def _prepare(context: UpdateContext, stage: RefreshStage) -> None:
    dataset = context.pipeline.dataset(stage.dataset)
    path = delta_table(context, dataset)
    if path is None or dataset.sink is not None:  # what a sink writes to is not the pipeline's to shape
        return
    context.check_lease()
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


def _run(
    context: UpdateContext, stage: RefreshStage, name: str, outcome: FlowOutcome, prepared: _Prepared
) -> None:
    """Run one flow to its terminal record; its outcome says how it ended."""
    dataset, flow = context.pipeline.dataset(stage.dataset), context.pipeline.flow(name)
    try:
        prepared.ensure()
    except Exception as error:
        outcome.status = FlowStatus.FAILED
        outcome.error = flow_error(flow, error, context.pipeline.evaluation.labels)
    else:
        run_with_retries(
            context,
            dataset,
            flow,
            outcome,
            lambda: run_flow(context, dataset, flow, outcome, force=stage.whole),
        )
    record_end(context, outcome)


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


def leave_out(context: UpdateContext, outcome: FlowOutcome, failed: list[str]) -> None:
    """End a flow that was not begun: skipped after a failure, else stopped with those before it."""
    if failed:
        outcome.status = FlowStatus.SKIPPED
        outcome.error = UpdateFailed(
            f"{outcome.dataset} was skipped: {', '.join(failed)}, which it reads, was not completed."
        )
    else:
        outcome.status = FlowStatus.STOPPED
    record_end(context, outcome)
