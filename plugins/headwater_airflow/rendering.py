"""The one place where a pipeline's tasks become operators."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from airflow.sdk import BaseNotifier, BaseOperator

from headwater_airflow.assets import dataset_asset
from headwater_airflow.entities import UPDATE_TASK_ID, DatasetTask, PipelineTask
from headwater_airflow.operators.backfill import BackfillOperator
from headwater_airflow.operators.dataset_update import DatasetUpdateOperator
from headwater_airflow.operators.lag_check import LagCheckOperator
from headwater_airflow.operators.limit_checks import (
    AdviceCheckOperator,
    CheckpointCheckOperator,
    FreshnessCheckOperator,
    PaceCheckOperator,
    RetentionCheckOperator,
    RulesCheckOperator,
)
from headwater_airflow.operators.repair_checkpoint import RepairCheckpointOperator
from headwater_airflow.operators.run_continuously import RunContinuouslyOperator
from headwater_airflow.operators.run_maintenance import RunMaintenanceOperator
from headwater_airflow.operators.run_update import RunUpdateOperator

# A table that this run leaves out is skipped; those that read it are still looked at.
_RULE = "none_failed"
# A check that hangs would keep back all checks after it, and with them every alert.
_LONGEST_CHECK = timedelta(minutes=15)


def render(task: PipelineTask) -> list[BaseOperator]:
    """Make the operators of a pipeline, within the DAG that is being built.

    ``watched``: a task that runs the whole update, and beside it a task per table that follows. ``per_table``: a
    submit per table. Without a graph, and for a continuous update, which does not end: the task that runs the whole update.
    """
    if task.continuous:
        return [
            RunContinuouslyOperator(
                task_id=UPDATE_TASK_ID,
                task_display_name="update",
                pipeline=task.pipeline,
                doc_md="Keeps the update running in one Spark application, until the task is stopped.",
                **_submit_settings(task, task.airflow.priority_weight + 1),
            )
        ]
    if task.airflow.tasks == "per_table" and task.datasets:
        return _per_table(task)
    update = RunUpdateOperator(
        task_id=UPDATE_TASK_ID,
        task_display_name="update",
        pipeline=task.pipeline,
        announces=[table.dataset for table in task.announced],
        outlets=[dataset_asset(task.pipeline_id, table) for table in task.announced],
        doc_md="Runs the update in one Spark application. The other tasks follow it, one for each table.",
        # The DAG's own bound does not hold for runs of Airflow's backfill: each would start Spark to wait for the others.
        max_active_tis_per_dag=1,
        **_submit_settings(task, task.airflow.priority_weight + 1),
    )
    return [update, *_watchers(task)]


def render_checks(task: PipelineTask, notifiers: Sequence[BaseNotifier] = ()) -> list[BaseOperator]:
    """Make the operators that hold a pipeline to its limits, within the DAG that is being built: one a kind of limit.

    The lag is always looked at; without a limit, its task only shows it.
    """
    alerts = task.airflow.alerts
    common: dict[str, Any] = {
        "pipeline": task.pipeline,
        "notifiers": notifiers,
        "retries": 0,
        "execution_timeout": _LONGEST_CHECK,
    }
    checks: list[BaseOperator] = [
        LagCheckOperator(
            task_id="lag", max_seconds=alerts.lag_seconds, max_records=alerts.lag_records, **common
        )
    ]
    if alerts.freshness_minutes is not None or alerts.event_freshness:
        checks.append(
            FreshnessCheckOperator(
                task_id="freshness",
                max_minutes=alerts.freshness_minutes,
                events=alerts.event_freshness,
                **common,
            )
        )
    if alerts.failed_rules_percent is not None:
        checks.append(RulesCheckOperator(task_id="rules", max_percent=alerts.failed_rules_percent, **common))
    if alerts.checkpoint_health:
        checks.append(CheckpointCheckOperator(task_id="checkpoints", **common))
    if task.has_pace_limit:
        checks.append(PaceCheckOperator(task_id="pace", max_seconds=alerts.batch_seconds, **common))
    if alerts.retention_percent is not None:
        checks.append(
            RetentionCheckOperator(task_id="retention", max_percent=alerts.retention_percent, **common)
        )
    if alerts.advice:
        checks.append(AdviceCheckOperator(task_id="advice", **common))
    return checks


def render_maintenance(task: PipelineTask) -> list[BaseOperator]:
    """Make the operators of maintenance, within the DAG that is being built: the plan, then the work."""
    settings = _submit_settings(task, task.airflow.priority_weight)
    plan = RunMaintenanceOperator(task_id="plan", pipeline=task.pipeline, only_plan=True, **settings)
    work = RunMaintenanceOperator(task_id="maintain", pipeline=task.pipeline, **settings)
    work.set_upstream(plan)
    return [plan, work]


def render_repair(task: PipelineTask) -> list[BaseOperator]:
    """Make the operators of a repair, within the DAG that is being built: the plan, then the operation."""
    plan = RepairCheckpointOperator(task_id="plan", pipeline=task.pipeline, only_plan=True, retries=0)
    repair = RepairCheckpointOperator(task_id="repair", pipeline=task.pipeline, retries=0)
    repair.set_upstream(plan)
    return [plan, repair]


def render_backfill(task: PipelineTask, *, scheduled: bool) -> BaseOperator:
    """Make the operator that fills a range of tables, within the DAG that is being built.

    Runs of Airflow's backfill come side by side; at most as many as here start Spark at once.
    """
    tables = [table for table in task.datasets if table.is_table] or task.announced
    return BackfillOperator(
        task_id="backfill",
        pipeline=task.pipeline,
        scheduled=scheduled,
        announces=[table.dataset for table in tables],
        outlets=[dataset_asset(task.pipeline_id, table) for table in tables],
        max_active_tis_per_dag=2,
        **_submit_settings(task, task.airflow.priority_weight),
    )


def _watchers(task: PipelineTask) -> list[BaseOperator]:
    operators = {
        dataset.dataset: DatasetUpdateOperator(
            task_id=dataset.task_id,
            task_display_name=dataset.dataset,
            pipeline=task.pipeline,
            dataset=dataset.dataset,
            asset=dataset_asset(task.pipeline_id, dataset) if dataset.is_table else None,
            retries=0,
            trigger_rule=_RULE,
            weight_rule="absolute",
            priority_weight=task.airflow.priority_weight,
            doc_md=dataset.comment,
        )
        for dataset in task.datasets
    }
    _connect(task.datasets, operators)
    return list(operators.values())


def _per_table(task: PipelineTask) -> list[BaseOperator]:
    operators = {
        dataset.dataset: RunUpdateOperator(
            task_id=dataset.task_id,
            task_display_name=dataset.dataset,
            pipeline=task.pipeline,
            tables=[dataset.dataset],
            outlets=[dataset_asset(task.pipeline_id, dataset)] if dataset.is_table else [],
            trigger_rule=_RULE,
            doc_md=dataset.comment,
            # One update of a pipeline at a time: a second one would be refused.
            max_active_tis_per_dag=1,
            **_submit_settings(task, task.airflow.priority_weight),
        )
        for dataset in task.datasets
    }
    _connect(task.datasets, operators)
    return list(operators.values())


def _connect(datasets: tuple[DatasetTask, ...], operators: dict[str, Any]) -> None:
    for dataset in datasets:
        for upstream in dataset.upstream:
            operators[dataset.dataset].set_upstream(operators[upstream])


def _submit_settings(task: PipelineTask, priority: int) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "conn_id": task.airflow.connection,
        "retries": task.airflow.retries,
        "retry_delay": task.airflow.retry_delay,
        "execution_timeout": task.airflow.timeout,
        "weight_rule": "absolute",
        "priority_weight": priority,
    }
    pool = task.airflow.pool or default_pool()
    if pool:
        settings["pool"] = pool
    return settings


def default_pool(environment: Mapping[str, str] = os.environ) -> str | None:
    """The pool of every task that may start a driver, where its pipeline names none: HEADWATER_POOL.

    One value for a deployment bounds the JVMs that its workers start at once, whoever writes the pipelines.
    """
    return environment.get("HEADWATER_POOL", "").strip() or None
