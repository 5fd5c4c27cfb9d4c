"""The Spark side of ``headwater run`` and ``headwater validate``: arguments in, report out."""

from __future__ import annotations

import logging

from headwater.contract.arguments import RunArguments
from headwater.contract.driver_report import ReportedError
from headwater.contract.findings import show_findings
from headwater.contract.logs import show_error
from headwater.contract.printing import print_json
from headwater.definitions.finding import CODE_OF_CONDITION, finding
from headwater.errors import InvalidPipeline
from headwater.files.atomic_files import write_atomically
from headwater.graph.manifest import FILE_NAME, portable
from headwater.graph.pipeline_project import PipelineProject
from headwater.updates.continuous_mode import refuse_selection, with_trigger
from headwater.updates.planned_update import planned_update
from headwater_spark.execution.changed_definition import opened_again
from headwater_spark.execution.report import run_report
from headwater_spark.execution.update import UpdateRequest, lint_only, resolve_only, run_update
from headwater_spark.session import end_session

_log = logging.getLogger("headwater.update")


def answer(project: PipelineProject, arguments: RunArguments) -> int:
    """Do what the arguments ask for and print the result; returns the exit code. Raises HeadwaterError."""
    project = with_trigger(project, arguments.continuous)
    if arguments.validate:
        return _validate(project, arguments)
    if arguments.dry_run:
        planned_update(project, resolve_only(project), arguments.selection).show(as_json=arguments.as_json)
        return 0
    refuse_selection(project, arguments.selection)
    request = UpdateRequest(
        arguments.selection,
        arguments.request_id,
        arguments.attempt,
        arguments.max_attempts,
        requested_at=arguments.requested_at,
        announced_together=arguments.announced_together,
    )
    result = run_update(project, request)
    while result.again:
        _log.info(
            "The application begins again, because %s.", result.again, extra={"pipeline": project.pipeline_id}
        )
        end_session()
        project = with_trigger(opened_again(project), arguments.continuous)
        result = run_update(project, request)
    report = run_report(result)
    for outcome in result.outcomes:
        if outcome.error is not None:
            show_error(
                ReportedError.of(outcome.error),
                pipeline=project.pipeline_id,
                update=result.update_id,
                flow=outcome.flow,
            )
    report.show(as_json=arguments.as_json)
    return report.exit_code


def _validate(project: PipelineProject, arguments: RunArguments) -> int:
    strict = arguments.strict or project.spec.lint.strict
    try:
        manifest, report = lint_only(project)
    except InvalidPipeline as error:
        if error.condition not in CODE_OF_CONDITION:
            raise
        return _end_invalid(error, as_json=arguments.as_json)
    failed = report.fails(strict=strict)
    path = project.folder / FILE_NAME
    if not failed:
        write_atomically(path, portable(manifest, project.configuration).to_json())
    if arguments.as_json:
        print_json(
            {
                "update_id": None,
                "state": "INVALID" if failed else "VALID",
                "flows": [],
                "datasets": [{"name": entry.name, "kind": entry.kind} for entry in manifest.datasets],
                "manifest": None if failed else str(path),
                "findings": [one.as_dict() for one in report.findings],
                "silenced": [one.as_dict() for one in report.silenced],
            }
        )
        return 2 if failed else 0
    show_findings(report.findings, len(report.silenced))
    if failed:
        print("Nothing was written: correct the errors, or silence what is meant to be as it is.")
        return 2
    print(f"The pipeline is valid: {len(manifest.datasets)} datasets, {len(manifest.flows)} flows.")
    print(f"Wrote {path}; commit it, Airflow builds the DAG from it.")
    return 0


def _end_invalid(error: InvalidPipeline, *, as_json: bool) -> int:
    """End with an error that is also one of the linter's findings."""
    show_error(ReportedError.of(error))
    if as_json:
        entry = finding(
            CODE_OF_CONDITION[error.condition], ReportedError.of(error).message, error.remedy
        ).as_dict()
        entry |= {"where": error.where, "silence": ""}
        print_json(
            {"update_id": None, "state": "INVALID", "flows": [], "error": ReportedError.of(error).model_dump(), "findings": [entry], "silenced": []}
        )  # fmt: skip
    return error.exit_code
