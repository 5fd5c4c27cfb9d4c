"""Tables whose tasks do not follow an update: somebody has cleared the task that runs it, and not theirs.

Clearing ``update`` alone runs it again in a run whose other tasks are over. What it writes then has to wake those who wait for it all
the same, and there is nobody else to say so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from airflow.sdk import BaseOperator

from headwater.event_log.reader import flow_results
from headwater.graph.pipeline_project import PipelineProject
from headwater_airflow.following.update_record import newest_update
from headwater_airflow.operators.announcement import announce_tables
from headwater_airflow.operators.dataset_update import DatasetUpdateOperator
from headwater_airflow.triggers.dataset_update import tasks_that_are_over


@dataclass(frozen=True)
class Unfollowed:
    """The tasks of tables that were over before a try of the task ``update`` began; ``all``: the try is followed by none."""

    tables: tuple[DatasetUpdateOperator, ...] = ()
    all: bool = False

    def __bool__(self) -> bool:
        return bool(self.tables)


def unfollowed_tables(task: BaseOperator, instance: Any) -> Unfollowed:
    """Whom this try of the task ``update`` has to speak for; the first try is followed by all."""
    if instance.try_number < 2:
        return Unfollowed()
    dag = task.get_dag()
    tables = [other for other in dag.tasks if isinstance(other, DatasetUpdateOperator)] if dag else []
    tables = [table for table in tables if table.outlets]
    names = [table.task_id for table in tables]
    over = tasks_that_are_over(instance.dag_id, instance.run_id, names) if names else ()
    ended = tuple(table for table in tables if table.task_id in over)
    return Unfollowed(ended, bool(ended) and len(ended) == len(tables))


def announce_unfollowed(
    task: BaseOperator, context: Any, project: PipelineProject, request: str, alone: Unfollowed
) -> None:
    """Make the events of these tables, as far as this try has changed them, events of the task that ran the update.

    So are those of rows that an earlier try wrote, of a table whose own task was red.
    """
    update = newest_update(project, request)
    if update is None:
        return
    results = flow_results(project.state_folder, update_id=update.update_id)
    of_tables = [(table.dataset, asset) for table in alone.tables for asset in table.outlets]
    announce_tables(task, context, project, request, of_tables, results, of_newest=True)
    if task.outlets:
        names = ", ".join(asset.name for asset in task.outlets)
        task.log.info("Announced here, as the tasks of these tables were over before: %s", names)
