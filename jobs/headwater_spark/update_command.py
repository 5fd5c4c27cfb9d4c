"""The Spark side of ``headwater run`` and ``headwater validate``: arguments in, report out."""

from __future__ import annotations

import sys

from headwater.checkpoints.layout import write_atomically
from headwater.commands.arguments import RunArguments
from headwater.commands.printing import print_json
from headwater.commands.report import FlowReport, RunReport
from headwater.errors import RefusedForSafety
from headwater.event_log.details import FlowStatus
from headwater.graph.manifest import FILE_NAME, portable
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.update_plan import Selection
from headwater_spark.execution.outcome import FlowOutcome
from headwater_spark.execution.update import UpdateRequest, UpdateResult, plan_only, resolve_only, run_update


def answer(project: PipelineProject, arguments: RunArguments) -> int:
    """Do what the arguments ask for and print the result; returns the exit code. Raises HeadwaterError."""
    if arguments.validate:
        return _validate(project, as_json=arguments.as_json)
    selection = Selection(
        arguments.tables, arguments.full_refresh, arguments.full_refresh_all, arguments.reset_checkpoint
    )
    if arguments.dry_run:
        plan = plan_only(project, selection)
        stages = [str(stage) for stage in (*plan.resets, *plan.refreshes)]
        if arguments.as_json:
            print_json({"update_id": None, "state": "PLANNED", "flows": [], "plan": stages})
        else:
            print(plan)
        return 0
    request = UpdateRequest(selection, arguments.request_id, arguments.attempt, arguments.max_attempts)
    result = run_update(project, request)
    report = _report(result)
    for outcome in result.outcomes:
        if outcome.error is not None:
            print(outcome.error, file=sys.stderr)
    report.show(as_json=arguments.as_json)
    return report.exit_code


def _validate(project: PipelineProject, *, as_json: bool) -> int:
    manifest = resolve_only(project)
    path = project.folder / FILE_NAME
    write_atomically(path, portable(manifest, project.configuration).to_json())
    if as_json:
        datasets = [{"name": entry.name, "kind": entry.kind} for entry in manifest.datasets]
        print_json(
            {"update_id": None, "state": "VALID", "flows": [], "datasets": datasets, "manifest": str(path)}
        )
    else:
        print(f"The pipeline is valid: {len(manifest.datasets)} datasets, {len(manifest.flows)} flows.")
        print(f"Wrote {path}; commit it, Airflow builds the DAG from it.")
    return 0


def _report(result: UpdateResult) -> RunReport:
    flows = tuple(_flow_report(outcome) for outcome in result.outcomes)
    message = result.error.what.partition("\n")[0] if result.error is not None else ""
    failed = [outcome.error for outcome in result.outcomes if outcome.status is FlowStatus.FAILED]
    refused = bool(failed) and all(isinstance(error, RefusedForSafety) for error in failed)
    return RunReport(result.update_id, str(result.state), flows, result.seconds, message, refused)


def _flow_report(outcome: FlowOutcome) -> FlowReport:
    return FlowReport(
        outcome.flow,
        outcome.dataset,
        str(outcome.status),
        outcome.batches,
        outcome.input_rows,
        outcome.output_rows,
        outcome.dropped_rows,
        outcome.quarantined_rows,
        str(outcome.error) if outcome.error is not None else None,
    )
