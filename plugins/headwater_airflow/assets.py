"""The tables of pipelines as Airflow's assets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.sdk import Asset, BaseOperator

from headwater.event_log.quality import fold_quality
from headwater.event_log.reader import events
from headwater.graph.pipeline_project import PipelineProject
from headwater_airflow.entities import DatasetTask, known_tables, read_pipeline
from headwater_airflow.following.dataset_verdict import Ending, Verdict
from headwater_airflow.roots import pipeline_project


def dataset_asset(pipeline_id: str, task: DatasetTask) -> Asset:
    """The asset of a stored dataset; its URI is ``x-delta://<pipeline>/[<catalog>/]<schema>/<table>``."""
    return Asset(
        name=f"{pipeline_id}.{task.dataset}",
        uri=f"x-delta://{pipeline_id}/{task.location}",
        group="headwater",
    )


def table_asset(pipeline: str, dataset: str) -> Asset:
    """The asset to schedule a DAG on: ``DAG(schedule=[table_asset("orders", "daily_revenue")])``.

    Also by a manifest that is older than the sources: the DAG of others must not go because a source was edited.

    Raises:
        KeyError: if the pipeline's manifest has no such stored dataset.

    """
    project = pipeline_project(pipeline)
    tables = {task.dataset: task for task in known_tables(project) if task.is_table}
    if dataset in tables:
        return dataset_asset(project.pipeline_id, tables[dataset])
    known = ", ".join(tables) or read_pipeline(pipeline, project).without_graph
    raise KeyError(f"{pipeline} has no table {dataset!r}; it has: {known}")


def update_quality(project: PipelineProject, dataset: str, update_id: str) -> dict[str, dict[str, int]]:
    """For each expectation on a dataset, how many rows passed and failed it in an update."""
    if not update_id:
        return {}
    records = events(project.state_folder, update_id=update_id, event_type="flow_progress", dataset=dataset)
    rules, _ = fold_quality(records, dataset=dataset)
    return {rule.rule: {"passed": rule.passed, "failed": rule.failed} for rule in rules}


def announce(task: BaseOperator, context: Any, *said: tuple[Verdict, Mapping[str, Any]]) -> None:
    """Put what changed, and more of it, into the task's asset events: one for each outlet, in their order. Others make none.

    A task that succeeds makes an event for every outlet that it still has, and each event wakes other DAGs.
    """
    changed = [
        (asset, verdict, more)
        for asset, (verdict, more) in zip(task.outlets, said, strict=False)
        if verdict.ending is Ending.UPDATED
    ]
    for asset, verdict, more in changed:
        context["outlet_events"][asset].extra = {**verdict.asset_extra(), **more}
    task.outlets = [asset for asset, _, _ in changed]


def silence(task: BaseOperator) -> None:
    """Let the running task make no asset events."""
    task.outlets = []
