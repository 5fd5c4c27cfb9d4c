"""What an asset event of a table says, and the events that the task of an update makes for tables without a task of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from airflow.sdk import Asset, BaseOperator

from headwater.errors import HeadwaterError
from headwater.event_log.flow_result import FlowResult
from headwater.graph.manifest import FILE_NAME, read_manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater_airflow.assets import announce, silence, update_quality
from headwater_airflow.following.dataset_verdict import Ending, UpdateOutcome, Verdict, WatchedDataset, decide
from headwater_airflow.following.unannounced import with_unannounced

_COUNTS = ("input_rows", "output_rows", "dropped_rows", "quarantined_rows")


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


def announce_backfill(
    task: BaseOperator,
    context: Any,
    project: PipelineProject,
    tables: Iterable[tuple[str, Asset]],
    report: Mapping[str, Any],
    *,
    retried: bool,
) -> None:
    """Make an event of the running task for each of these tables whose rows a backfill has changed.

    Args:
        task: which ran the backfill.
        context: of the task.
        project: the pipeline.
        tables: each with its asset.
        report: of the driver, as JSON values.
        retried: an attempt before may have written what this one finds done, and have ended before Airflow had its event.

    """
    more = {"rules": {}, "spec_hash": project.source_hash(), "backfill_id": report.get("backfill_id", "")}
    filled = [(asset, _filled(table, report, retried=retried)) for table, asset in tables]
    task.outlets = [asset for asset, verdict in filled if verdict is not None]
    announce(task, context, *((verdict, more) for _, verdict in filled if verdict is not None))


def _filled(table: str, report: Mapping[str, Any], *, retried: bool) -> Verdict | None:
    """What a backfill has done to a table; None where no row of it is another."""

    def of_table(key: str) -> list[Mapping[str, Any]]:
        return [part for part in report.get(key) or () if part["dataset"].lower() == table.lower()]

    # The update that follows a load of history is announced as one that no run of its DAG requested: with the next that one does.
    parts = [flow for flow in of_table("flows") if "mode" in flow and _has_changed(flow, retried=retried)]
    parts += [{"output_rows": part["rows"]} for part in of_table("history") if part["rows"] or retried]
    if not parts:
        return None
    sums = {name: sum(part.get(name, 0) for part in parts) for name in _COUNTS}
    version = max((part["version"] for part in parts if part.get("version") is not None), default=None)
    return Verdict(Ending.UPDATED, "A range of it was filled.", version=version, **sums)


def _has_changed(flow: Mapping[str, Any], *, retried: bool) -> bool:
    if flow["state"] == "DONE_BEFORE":
        return retried
    return flow["state"] == "COMPLETED" and bool(flow["output_rows"] or flow["replaced_rows"])


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
