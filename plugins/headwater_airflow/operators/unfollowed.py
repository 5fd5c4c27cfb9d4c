"""Tables whose tasks do not follow an update: somebody has cleared the task that runs it, and not theirs.

Clearing ``update`` alone runs it again in a run whose other tasks are over. What it writes then has to wake those who wait for it all
the same, and there is nobody else to say so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.sdk import BaseOperator

from headwater.event_log.reader import flow_results
from headwater.graph.pipeline_project import PipelineProject
from headwater_airflow.following.update_record import newest_update
from headwater_airflow.operators.announcement import announce_tables
from headwater_airflow.operators.dataset_update import OF_UPDATES, DatasetUpdateOperator
from headwater_airflow.triggers.dataset_update import tasks_that_are_over


def is_followed_by_none(task: BaseOperator, instance: Any) -> bool:
    """Whether the tasks of all tables were over before this try of the task ``update`` began."""
    tables = _tables(task, instance)
    return bool(tables) and len(_over(tables, instance)) == len(tables)


def announce_unfollowed(task: BaseOperator, context: Any, project: PipelineProject, request: str) -> None:
    """Make events of the task that ran the update for tables whose own tasks have ended without a look at it.

    So are those of rows that an earlier try wrote, of a table whose own task was red.
    """
    instance = context["ti"]
    tables = _tables(task, instance)
    update = newest_update(project, request) if tables else None
    if update is None:
        return
    alone = [
        table
        for table in _over(tables, instance)
        if update.update_id not in _spoken_for(instance, table.task_id)
    ]
    results = flow_results(project.state_folder, update_id=update.update_id)
    of_tables = [(table.dataset, asset) for table in alone for asset in table.outlets]
    announce_tables(task, context, project, request, of_tables, results, of_newest=True)
    if task.outlets:
        names = ", ".join(asset.name for asset in task.outlets)
        task.log.info("Announced here, as the tasks of these tables were over before: %s", names)


def _tables(task: BaseOperator, instance: Any) -> list[DatasetUpdateOperator]:
    """The tasks of tables beside ``update``; none for its first try, which is followed by all."""
    dag = task.get_dag() if instance.try_number > 1 else None
    tables = [other for other in dag.tasks if isinstance(other, DatasetUpdateOperator)] if dag else []
    return [table for table in tables if table.outlets]


def _over(tables: Sequence[DatasetUpdateOperator], instance: Any) -> list[DatasetUpdateOperator]:
    names = [table.task_id for table in tables]
    over = tasks_that_are_over(instance.dag_id, instance.run_id, names)
    return [table for table in tables if table.task_id in over]


def _spoken_for(instance: Any, task_id: str) -> Sequence[str]:
    """The updates in which a table's part ended, as its task has announced it; none where it had nothing to announce."""
    result = instance.xcom_pull(task_ids=task_id, map_indexes=-1)
    return result.get(OF_UPDATES) or () if isinstance(result, Mapping) else ()
