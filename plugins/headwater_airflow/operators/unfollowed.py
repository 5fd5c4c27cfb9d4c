"""Tables whose tasks do not follow an update: somebody has cleared the task that runs it, and not theirs.

Clearing ``update`` alone runs it again in a run whose other tasks are over. What it writes then has to wake those who wait for it all
the same, and there is nobody else to say so.
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseOperator

from headwater.event_log.reader import flow_results
from headwater.graph.manifest import FILE_NAME, read_manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater_airflow.assets import announce, update_quality
from headwater_airflow.following.dataset_verdict import UpdateOutcome, Verdict, WatchedDataset, decide
from headwater_airflow.following.update_record import newest_update
from headwater_airflow.operators.dataset_update import DatasetUpdateOperator
from headwater_airflow.triggers.dataset_update import tasks_that_are_over


def unfollowed_tables(task: BaseOperator, instance: Any) -> list[DatasetUpdateOperator]:
    """The tasks of tables that were over before this try of the task ``update`` began; the first try is followed by all."""
    if instance.try_number < 2:
        return []
    dag = task.get_dag()
    tables = [other for other in dag.tasks if isinstance(other, DatasetUpdateOperator)] if dag else []
    names = [table.task_id for table in tables if table.outlets]
    over = tasks_that_are_over(instance.dag_id, instance.run_id, names) if names else ()
    return [table for table in tables if table.task_id in over]


def announce_unfollowed(
    task: BaseOperator,
    context: Any,
    project: PipelineProject,
    request: str,
    tables: list[DatasetUpdateOperator],
) -> None:
    """Make the events of these tables, as far as this try has changed them, events of the task that ran the update."""
    update, manifest = newest_update(project, request), read_manifest(project.folder / FILE_NAME)
    if not tables or update is None or manifest is None:
        return
    results = flow_results(project.state_folder, update_id=update.update_id)
    spec_hash, known = project.source_hash(), {entry.name for entry in manifest.outputs}
    said: list[tuple[Verdict, dict[str, Any]]] = []
    outlets = []
    for table in tables:
        if table.dataset not in known:
            continue
        verdict = decide(WatchedDataset.of(manifest, table.dataset), results, UpdateOutcome.SUCCEEDED)
        assert verdict is not None, "an update that is over has an end for every table"
        rules = update_quality(project, table.dataset, verdict.update_id)
        said.append((verdict, {"rules": rules, "spec_hash": spec_hash}))
        outlets += table.outlets
    task.outlets = outlets
    announce(task, context, *said)
    if task.outlets:
        names = ", ".join(asset.name for asset in task.outlets)
        task.log.info("Announced here, as the tasks of these tables were over before: %s", names)
