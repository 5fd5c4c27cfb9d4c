"""Which flow runs when: each after the flows it reads from, independent ones concurrently."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from graphlib import TopologicalSorter

from headwater.definitions.flow_settings import concurrent_flows
from headwater.delta_log.table_history import table_exists
from headwater.errors import UpdateFailed
from headwater.event_log.details import FlowStatus
from headwater.graph.update_plan import RefreshStage, UpdatePlan
from headwater_spark.delta_writes.table_upkeep import apply_declaration
from headwater_spark.delta_writes.tables import create_table, needs_creating_first, remove_empty_logs
from headwater_spark.execution.failures import flow_error
from headwater_spark.execution.flow_lifecycle import record_end, run_flow
from headwater_spark.execution.flow_run import FlowRun
from headwater_spark.execution.late_rows import finish_replacements
from headwater_spark.execution.outcome import FlowOutcome
from headwater_spark.execution.start_checks import refusal_of_log
from headwater_spark.execution.update_context import UpdateContext
from headwater_spark.execution.view_sources import readers

# Where nothing says otherwise: on one machine more at once would gain nothing, they share its cores.
MAX_CONCURRENT_FLOWS = 4
# How flows end by themselves without being completed.
FAILURES = (FlowStatus.FAILED, FlowStatus.SKIPPED)


def walk(
    stages: Sequence[RefreshStage],
    run: Callable[[RefreshStage, str], bool],
    leave_out: Callable[[RefreshStage, list[str]], None],
    stopped: Callable[[], bool],
    at_once: int | None = MAX_CONCURRENT_FLOWS,
) -> None:
    """Run each stage after those that it reads from; independent ones, and the flows of one stage, run concurrently, unless a
    flow waits for another.

    Args:
        stages: of one walk; a stage may name upstream stages that are not among them, which count as done.
        run: runs a flow of a stage, on its own thread; returns whether it was completed.
        leave_out: called for a stage that is not run, or some flows of it, with the upstream datasets, or flows, that were not
            completed.
        stopped: whether nothing more may start.
        at_once: how many flows may run side by side, None for all that can.
    """
    by_name = {stage.dataset: stage for stage in stages}
    sorter = TopologicalSorter({name: set(stage.after) & set(by_name) for name, stage in by_name.items()})
    sorter.prepare()
    running: dict[Future[bool], tuple[str, str]] = {}
    inside: dict[str, _FlowsOfStage] = {}
    incomplete: set[str] = set()

    def begin(name: str) -> None:
        stage, flows = by_name[name], inside[name]
        for flow in flows.ready(leave_out, stopped):
            running[pool.submit(run, stage, flow)] = name, flow
        if flows.over:
            if not flows.complete:
                incomplete.add(name)
            sorter.done(name)

    most = at_once or max(1, sum(len(stage.flows) for stage in stages))
    with ThreadPoolExecutor(most, thread_name_prefix="flow") as pool:
        while sorter.is_active():
            for name in sorted(sorter.get_ready(), key=list(by_name).index):
                stage = by_name[name]
                failed = [upstream for upstream in stage.after if upstream in incomplete]
                if failed or stopped():
                    incomplete.add(name)
                    leave_out(stage, failed)
                    sorter.done(name)
                    continue
                inside[name] = _FlowsOfStage(stage)
                begin(name)
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                name, flow = running.pop(future)
                inside[name].ended(flow, completed=future.result())
                begin(name)


class _FlowsOfStage:
    """The flows of a stage that is being run: each begins when those that it waits for are completed."""

    def __init__(self, stage: RefreshStage) -> None:
        self._stage = stage
        self._waiting = list(stage.flows)
        self._running: set[str] = set()
        self._ended: dict[str, bool] = {}

    @property
    def over(self) -> bool:
        """Whether each has ended, or was left out."""
        return len(self._ended) == len(self._stage.flows)

    @property
    def complete(self) -> bool:
        """Whether each was completed, once it is over."""
        return all(self._ended.values())

    def ended(self, flow: str, *, completed: bool) -> None:
        """A flow has ended."""
        self._running.discard(flow)
        self._ended[flow] = completed

    def ready(
        self, leave_out: Callable[[RefreshStage, list[str]], None], stopped: Callable[[], bool]
    ) -> list[str]:
        """The flows that may begin now, each once. One that waits for what was not completed is left out, and what waits for it."""
        begun = []
        for flow in self._in_order():
            before = self._stage.before(flow)
            lost = [name for name in before if self._ended.get(name) is False]
            if lost or (before and stopped()):
                leave_out(replace(self._stage, flows=(flow,), waits={}), lost)
                self._ended[flow] = False
            elif all(name in self._ended for name in before):
                begun.append(flow)
        self._running.update(begun)
        self._waiting = [
            flow for flow in self._waiting if flow not in self._running and flow not in self._ended
        ]
        return begun

    def _in_order(self) -> list[str]:
        """Those that have not begun, each after those that it waits for, so that one look is enough."""
        order = TopologicalSorter(
            {flow: self._stage.before(flow) for flow in self._stage.flows}
        ).static_order()
        place = {flow: number for number, flow in enumerate(order)}
        return sorted(self._waiting, key=lambda flow: place[flow]) if self._stage.waits else self._waiting


def run_refreshes(context: UpdateContext, plan: UpdatePlan, outcomes: dict[str, FlowOutcome]) -> None:
    """Run the plan's refreshes once, and fill in ``outcomes`` (by flow). Other flows continue when one fails."""
    prepared = {stage.dataset: _Prepared(context, stage) for stage in plan.refreshes}
    context.changes.expect(readers(context, [flow for stage in plan.refreshes for flow in stage.flows]))

    def run(stage: RefreshStage, flow: str) -> bool:
        _run(context, stage, flow, outcomes[flow], prepared[stage.dataset])
        return outcomes[flow].status is FlowStatus.COMPLETED

    def skip(stage: RefreshStage, upstream: list[str]) -> None:
        # Not those that were stopped on request.
        failures = [outcome for outcome in outcomes.values() if outcome.status in FAILURES]
        broken = {name for outcome in failures for name in (outcome.dataset, outcome.flow)}
        failed = [name for name in upstream if name in broken]
        for flow in stage.flows:
            leave_out(context, outcomes[flow], failed)

    project = context.pipeline.project
    most = concurrent_flows(project.configuration, project.spec.spark, default=MAX_CONCURRENT_FLOWS)
    walk(plan.refreshes, run, skip, context.stop_requested.is_set, most)


class _Prepared:
    """The table of a stage, prepared by whichever of its flows is first; the others wait for it."""

    def __init__(self, context: UpdateContext, stage: RefreshStage) -> None:
        self._context, self._stage = context, stage
        self._lock = threading.Lock()
        self._attempted = False
        self._error: Exception | None = None

    def ensure(self) -> None:
        """Return when the table is ready; a failure to prepare it is raised for each flow."""
        with self._lock:
            if not self._attempted:
                try:
                    prepare_table(self._context, self._stage)
                except Exception as error:
                    self._error = error
                self._attempted = True
        if self._error is not None:
            raise self._error


def prepare_table(context: UpdateContext, stage: RefreshStage) -> None:
    """Make the table of a stage ready for its flows: the declaration is applied, or the table created where that comes first."""
    dataset = context.pipeline.dataset(stage.dataset)
    path = context.delta_table(dataset)
    if path is None or dataset.sink is not None:  # the target of a sink is not the pipeline's table
        return
    context.check_lease()
    remove_empty_logs(context.spark, path, context.quarantine_path(dataset))
    finish_replacements(context.spark, context.pipeline.project.state_folder, dataset.name, path)
    evaluation = context.pipeline.evaluation
    schema = evaluation.table_schema(dataset)
    if table_exists(path):
        declared = schema if dataset.schema is not None else None
        apply_declaration(context.spark, dataset, evaluation.kind_of(dataset), path, declared)
    elif (
        needs_creating_first(dataset, len(stage.flows), schema) or _merges(context, stage)
    ) and not has_written(context, stage):
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
        reason = refusal_of_log(FlowRun(context, dataset, flow, outcome), error)
        outcome.error = flow_error(flow, reason, context.pipeline.evaluation.labels)
    else:
        run_flow(FlowRun(context, dataset, flow, outcome), force=stage.whole)
    record_end(context, outcome)


def _merges(context: UpdateContext, stage: RefreshStage) -> bool:
    """Whether rows are merged into the table, which must exist for it."""
    flows = map(context.pipeline.flow, stage.flows)
    return any(context.pipeline.evaluation.output_mode_of(flow).kind.merges_by_key for flow in flows)


def has_written(context: UpdateContext, stage: RefreshStage) -> bool:
    """Whether a flow has written to the table before: then the preflight checks judge its absence."""
    return any(context.checkpoint(stage.dataset, flow).has_written() for flow in stage.flows)


def leave_out(context: UpdateContext, outcome: FlowOutcome, failed: list[str]) -> None:
    """End a flow that was not started: skipped after a failure, otherwise stopped with those before it."""
    if failed:
        outcome.status = FlowStatus.SKIPPED
        outcome.error = UpdateFailed(
            f"{outcome.flow} was skipped: {', '.join(failed)}, which it reads or depends on, was not completed."
        )
    else:
        outcome.status = FlowStatus.STOPPED
    record_end(context, outcome)
