"""What an asset event of a table says, and the events that the task of an update makes for tables without a task of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from airflow.sdk import Asset, BaseOperator

from headwater.errors import HeadwaterError
from headwater.event_log.flow_result import FlowResult
from headwater.graph.manifest import FILE_NAME, read_manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater_airflow.assets import announce, silence, update_quality
from headwater_airflow.following.dataset_verdict import UpdateOutcome, Verdict, WatchedDataset, decide
from headwater_airflow.following.unannounced import with_unannounced


def event_details(task: BaseOperator, project: PipelineProject, table: str, update_id: str) -> dict[str, Any]:
    """What an event tells beside the verdict. It goes out without what the expectations found where the log can't be read now."""
    rules: dict[str, dict[str, int]] = {}
    try:
        rules = update_quality(project, table, update_id)
    except HeadwaterError as error:
        task.log.warning("The event does not say what the expectations found: %s", error)
    return {"rules": rules, "spec_hash": project.source_hash()}


def announce_tables(
    task: BaseOperator,
    context: Any,
    project: PipelineProject,
    request: str,
    tables: Iterable[tuple[str, Asset]],
    results: Sequence[FlowResult],
    *,
    of_newest: bool = False,
) -> None:
    """Make an event of the running task for each of these tables that has changed in an update that ended well.

    Args:
        task: which ran the update.
        context: of the task.
        project: the pipeline.
        request: the id of the run's request.
        tables: each with its asset; one that the manifest no longer has is left out.
        results: of the flows of the update.
        of_newest: these are of the request's newest update alone.

    """
    manifest = read_manifest(project.folder / FILE_NAME)
    if manifest is None:
        silence(task)
        return
    known, said, outlets = {entry.name for entry in manifest.outputs}, [], []
    for table, asset in tables:
        if table not in known:
            task.log.warning("%s does not have the table %r any more: it has no event.", FILE_NAME, table)
            continue
        verdict = _verdict(WatchedDataset.of(manifest, table), project, request, results, of_newest=of_newest)
        said.append((verdict, event_details(task, project, table, verdict.update_id)))
        outlets.append(asset)
    task.outlets = outlets
    announce(task, context, *said)


def _verdict(
    dataset: WatchedDataset,
    project: PipelineProject,
    request: str,
    results: Sequence[FlowResult],
    *,
    of_newest: bool,
) -> Verdict:
    verdict = decide(dataset, results, UpdateOutcome.SUCCEEDED)
    assert verdict is not None, "an update that is over has an end for every table"
    return with_unannounced(verdict, dataset, project.state_folder, request, of_newest=of_newest)
