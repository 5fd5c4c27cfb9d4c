"""The DAGs of a pipeline: ``PipelineDag("orders")`` updates it, ``PipelineCheckDag`` holds it to its limits,
``PipelineMaintenanceDag`` maintains its tables and storage, ``PipelineBackfillDag`` fills ranges of its tables.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from airflow.sdk import DAG, BaseNotifier, CronDataIntervalTimetable

from headwater.errors import UsageError
from headwater_airflow.documentation import (
    backfill_doc,
    check_doc,
    maintenance_doc,
    pipeline_description,
    pipeline_doc,
    repair_doc,
)
from headwater_airflow.entities import PipelineTask, read_pipeline
from headwater_airflow.forms.backfill_form import backfill_params
from headwater_airflow.forms.parameter_form import parameter_fields, parameters_field
from headwater_airflow.forms.repair_form import repair_params
from headwater_airflow.forms.selection import flow_params, maintenance_params, selection_params
from headwater_airflow.rendering import (
    render,
    render_backfill,
    render_checks,
    render_maintenance,
    render_repair,
)
from headwater_airflow.roots import pipeline_project

# Fixed: a date that moves would make a new version of every DAG each time it is parsed.
_START = datetime(2025, 1, 1, tzinfo=UTC)


class _DagOfPipeline(DAG):  # type: ignore[misc]  # Airflow's types are not followed
    def _begin(
        self, task: PipelineTask, suffix: str, defaults: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> None:
        """Set the DAG up: common settings first, then those of this kind, then its author's."""
        DAG.__init__(self, f"{task.pipeline_id}{suffix}", **{**common_settings(task), **defaults, **settings})
        # The file that makes the DAG, two frames up: Airflow would take this one.
        self.fileloc = sys._getframe(2).f_code.co_filename  # noqa: SLF001


class PipelineDag(_DagOfPipeline):
    """The DAG of a pipeline, made from ``pipeline.yml`` and ``manifest.json``; only files are read.

    Where the manifest is missing or older than the sources, there is one task for the whole pipeline, and the DAG
    says so.

    Args:
        pipeline: the name of the pipeline's folder below ``jobs/pipelines`` (or HEADWATER_PIPELINES).
        settings: arguments of DAG, over those that come from the ``airflow`` section of ``pipeline.yml``.

    Raises:
        PipelineNotFound, InvalidSpec: if there is no such pipeline, or its ``pipeline.yml`` is wrong.

    """

    def __init__(self, pipeline: str, **settings: Any) -> None:
        task = read_pipeline(pipeline, pipeline_project(pipeline))
        offered = [dataset.dataset for dataset in task.datasets]
        stored = {dataset.dataset for dataset in task.datasets}
        flows = [flow.name for flow in task.manifest.flows if flow.target in stored] if task.manifest else []
        # With a submit for each table, no task runs an update of which another could take up what failed.
        of_the_whole = {} if task.airflow.tasks == "per_table" else flow_params(flows)
        defaults = {
            "description": pipeline_description(task),
            "doc_md": pipeline_doc(task),
            "schedule": task.schedule,
            "params": {**parameter_fields(task.parameters), **selection_params(offered), **of_the_whole},
        }
        self._begin(task, "", defaults, settings)
        with self:
            render(task)


class PipelineCheckDag(_DagOfPipeline):
    """A small DAG, ``<pipeline>_checks``, that fails when the pipeline breaks a limit of its ``alerts`` section.

    Args:
        pipeline: the name of the pipeline's folder.
        notifiers: Airflow's notifiers that are called once when a limit breaks, and once when it is met again; their
            templates see ``alert`` with title, text, state (``open``, ``resolved``) and lines.
        settings: arguments of DAG, over those that come from ``pipeline.yml``.

    Raises:
        PipelineNotFound, InvalidSpec: if there is no such pipeline, or its ``pipeline.yml`` is wrong.

    """

    def __init__(self, pipeline: str, *, notifiers: Sequence[BaseNotifier] = (), **settings: Any) -> None:
        task = read_pipeline(pipeline, pipeline_project(pipeline))
        defaults = {
            "description": f"Fails when {task.name} is over a limit of the alerts in its pipeline.yml.",
            "doc_md": check_doc(task),
            "schedule": task.airflow.check_schedule,
        }
        self._begin(task, "_checks", defaults, settings)
        with self:
            render_checks(task, notifiers)


class PipelineMaintenanceDag(_DagOfPipeline):
    """A DAG, ``<pipeline>_maintenance``, whose first task shows what is due in tables and storage, and whose second does it.

    Args:
        pipeline: the name of the pipeline's folder.
        settings: arguments of DAG, over those that come from ``pipeline.yml``.

    Raises:
        PipelineNotFound, InvalidSpec: if there is no such pipeline, or its ``pipeline.yml`` is wrong.

    """

    def __init__(self, pipeline: str, **settings: Any) -> None:
        task = read_pipeline(pipeline, pipeline_project(pipeline))
        tables = [dataset.dataset for dataset in task.datasets if dataset.is_table]
        defaults = {
            "description": f"Compaction, z-order, vacuum, log checkpoints and old epochs of {task.name}.",
            "doc_md": maintenance_doc(task),
            "schedule": task.airflow.maintenance_schedule,
            "params": maintenance_params(tables),
        }
        self._begin(task, "_maintenance", defaults, settings)
        with self:
            render_maintenance(task)


class PipelineRepairDag(_DagOfPipeline):
    """A DAG, ``<pipeline>_repair``, that repairs a flow's checkpoint by a form: the plan with its cost first, a dry run unless told.

    Args:
        pipeline: the name of the pipeline's folder.
        settings: arguments of DAG, over those that come from ``pipeline.yml``.

    Raises:
        PipelineNotFound, InvalidSpec: if there is no such pipeline, or its ``pipeline.yml`` is wrong.

    """

    def __init__(self, pipeline: str, **settings: Any) -> None:
        task = read_pipeline(pipeline, pipeline_project(pipeline))
        flows = task.manifest.flows if task.manifest else ()
        defaults = {
            "description": f"Repairs checkpoints of {task.name}: the plan and its cost first.",
            "doc_md": repair_doc(task),
            "schedule": None,
            "params": repair_params([flow.name for flow in flows if flow.streaming or flow.once]),
        }
        self._begin(task, "_repair", defaults, settings)
        with self:
            render_repair(task)


class PipelineBackfillDag(_DagOfPipeline):
    """A DAG, ``<pipeline>_backfill``, that fills ranges of tables: by its form, or by Airflow's own backfill over dates.

    Args:
        pipeline: the name of the pipeline's folder.
        interval: a cron expression that cuts time into the intervals of Airflow's backfill (UTC); none, and only
            the form is there.
        tables: filled in on the form; the tables that a backfill over dates fills.
        column: the column with their event time, filled in on the form.
        scheduled: fill each interval when it is over, too; without it scheduled runs do nothing.
        settings: arguments of DAG, over those that come from ``pipeline.yml``.

    Raises:
        PipelineNotFound, InvalidSpec: if there is no such pipeline, or its ``pipeline.yml`` is wrong.
        UsageError: ``scheduled`` without an ``interval``.

    """

    def __init__(
        self,
        pipeline: str,
        *,
        interval: str | None = None,
        tables: Sequence[str] = (),
        column: str | None = None,
        scheduled: bool = False,
        **settings: Any,
    ) -> None:
        if scheduled and interval is None:
            raise UsageError("scheduled=True needs an interval.", remedy='Give one: interval="@daily".')
        task = read_pipeline(pipeline, pipeline_project(pipeline))
        offered = [dataset.dataset for dataset in task.datasets if dataset.is_table]
        defaults = {
            "description": f"Fills ranges of the tables of the pipeline {task.name} from their definitions.",
            "doc_md": backfill_doc(task, interval),
            "schedule": CronDataIntervalTimetable(interval, timezone="UTC") if interval else None,
            "params": {**backfill_params(offered, tables, column), **parameters_field(task.parameters)},
        }
        self._begin(task, "_backfill", defaults, settings)
        with self:
            render_backfill(task, scheduled=scheduled)


def common_settings(task: PipelineTask) -> dict[str, Any]:
    """What all DAGs of a pipeline have in common."""
    return {
        "start_date": _START,
        "catchup": False,
        "max_active_runs": 1,
        "tags": ["headwater", *task.airflow.tags],
        "default_args": {"owner": task.airflow.owner} if task.airflow.owner else {},
    }
