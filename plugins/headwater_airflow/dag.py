"""The DAGs of a pipeline: ``PipelineDag("orders")`` updates it, ``PipelineCheckDag`` holds it to its limits,
``PipelineMaintenanceDag`` maintains its tables and storage, ``PipelineBackfillDag`` fills ranges of its tables.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from airflow.sdk import DAG, BaseNotifier, CronDataIntervalTimetable

from headwater.definitions.airflow_spec import ON_DATA
from headwater.errors import UsageError
from headwater_airflow.arrivals import PipelineDataAsset, data_asset
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
from headwater_airflow.forms.selection import flow_params, maintenance_params, selection_params, table_params
from headwater_airflow.notifications.from_spec import notifiers_on
from headwater_airflow.notifications.run_callback import RunCallback
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
    @contextmanager
    def _begin(
        self, task: PipelineTask, suffix: str, defaults: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> Iterator[None]:
        """Set the DAG up (common settings first, then those of this kind, then its author's); its tasks are made in the block."""
        common = common_settings(task)
        arguments = {**common, **defaults, **settings}
        # One that is given for all tasks must not take the queue of the spec away.
        arguments["default_args"] = {**common["default_args"], **(settings.get("default_args") or {})}
        form = arguments.pop("params", None)
        DAG.__init__(self, f"{task.dag_id}{suffix}", **arguments)
        self.fileloc = _author()
        with self:
            yield
        # A task sees its DAG's form in any case. One that is made after the form has a copy, and serializing those takes
        # four times as long as all the rest.
        if form is not None:
            self.params = form


def _author() -> str:
    """The file that makes the DAG; Airflow would take this one."""
    frame = sys._getframe(1)  # noqa: SLF001
    while frame.f_back is not None and frame.f_code.co_filename in (__file__, contextlib.__file__):
        frame = frame.f_back
    return frame.f_code.co_filename


class PipelineDag(_DagOfPipeline):
    """The DAG of a pipeline, made from ``pipeline.yml`` and ``manifest.json``; only files are read.

    Where the manifest is missing or older than the sources, there is one task for the whole pipeline, and the DAG
    says so.

    Args:
        pipeline: the name of the pipeline's folder below ``jobs/pipelines`` (or HEADWATER_PIPELINES); here and below,
            also what ``read_pipeline`` has read.
        settings: arguments of DAG, over those that come from the ``airflow`` section of ``pipeline.yml``.

    Raises:
        PipelineNotFound, InvalidSpec: if there is no such pipeline, or its ``pipeline.yml`` is wrong.

    """

    def __init__(self, pipeline: str | PipelineTask, **settings: Any) -> None:
        task = _task(pipeline)
        offered = [dataset.dataset for dataset in task.datasets]
        stored = {dataset.dataset for dataset in task.datasets}
        flows = [flow.name for flow in task.manifest.flows if flow.target in stored] if task.manifest else []
        selecting = {**selection_params(offered), **flow_params(flows)}
        if task.airflow.tasks == "per_table" and task.datasets:
            # With a submit for each table, no task runs an update of which another could take up what failed.
            selecting = table_params(offered)
        if task.continuous:
            # A continuous update takes the whole pipeline as it stands.
            selecting = {}
        defaults = {
            "description": pipeline_description(task),
            "doc_md": pipeline_doc(task),
            "schedule": _schedule(task),
            "params": {**parameter_fields(task.parameters), **selecting},
            **run_callbacks(task),
        }
        with self._begin(task, "", defaults, settings):
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

    def __init__(
        self, pipeline: str | PipelineTask, *, notifiers: Sequence[BaseNotifier] = (), **settings: Any
    ) -> None:
        task = _task(pipeline)
        defaults = {
            "description": f"Fails when {task.name} is over a limit of the alerts in its pipeline.yml.",
            "doc_md": check_doc(task),
            "schedule": task.airflow.check_schedule,
        }
        with self._begin(task, "_checks", defaults, settings):
            render_checks(task, [*notifiers, *notifiers_on(task.airflow.notifiers, "alert")])


class PipelineMaintenanceDag(_DagOfPipeline):
    """A DAG, ``<pipeline>_maintenance``, whose first task shows what is due in tables and storage, and whose second does it.

    Args:
        pipeline: the name of the pipeline's folder.
        settings: arguments of DAG, over those that come from ``pipeline.yml``.

    Raises:
        PipelineNotFound, InvalidSpec: if there is no such pipeline, or its ``pipeline.yml`` is wrong.

    """

    def __init__(self, pipeline: str | PipelineTask, **settings: Any) -> None:
        task = _task(pipeline)
        tables = [dataset.dataset for dataset in task.datasets if dataset.is_table]
        defaults = {
            "description": f"Compaction, z-order, vacuum, log checkpoints and old epochs of {task.name}.",
            "doc_md": maintenance_doc(task),
            # It needs the lease, which a continuous update never gives back.
            "schedule": None if task.continuous else task.airflow.maintenance_schedule,
            "params": maintenance_params(tables),
            **run_callbacks(task),
        }
        with self._begin(task, "_maintenance", defaults, settings):
            render_maintenance(task)


class PipelineRepairDag(_DagOfPipeline):
    """A DAG, ``<pipeline>_repair``, that repairs a flow's checkpoint by a form: the plan with its cost first, a dry run unless told.

    Args:
        pipeline: the name of the pipeline's folder.
        settings: arguments of DAG, over those that come from ``pipeline.yml``.

    Raises:
        PipelineNotFound, InvalidSpec: if there is no such pipeline, or its ``pipeline.yml`` is wrong.

    """

    def __init__(self, pipeline: str | PipelineTask, **settings: Any) -> None:
        task = _task(pipeline)
        flows = task.manifest.flows if task.manifest else ()
        defaults = {
            "description": f"Repairs checkpoints of {task.name}: the plan and its cost first.",
            "doc_md": repair_doc(task),
            "schedule": None,
            "params": repair_params([flow.name for flow in flows if flow.streaming or flow.once]),
            **run_callbacks(task),
        }
        with self._begin(task, "_repair", defaults, settings):
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
        pipeline: str | PipelineTask,
        *,
        interval: str | None = None,
        tables: Sequence[str] = (),
        column: str | None = None,
        scheduled: bool = False,
        **settings: Any,
    ) -> None:
        if scheduled and interval is None:
            raise UsageError("scheduled=True needs an interval.", remedy='Give one: interval="@daily".')
        task = _task(pipeline)
        offered = [dataset.dataset for dataset in task.datasets if dataset.is_table]
        defaults = {
            "description": f"Fills ranges of the tables of the pipeline {task.name} from their definitions.",
            "doc_md": backfill_doc(task, interval, scheduled=scheduled),
            "schedule": CronDataIntervalTimetable(interval, timezone="UTC") if interval else None,
            "params": {**backfill_params(offered, tables, column), **parameters_field(task.parameters)},
            **run_callbacks(task),
        }
        with self._begin(task, "_backfill", defaults, settings):
            render_backfill(task, scheduled=scheduled)


def common_settings(task: PipelineTask) -> dict[str, Any]:
    """What all DAGs of a pipeline have in common."""
    return {
        "start_date": _START,
        "catchup": False,
        "max_active_runs": 1,
        "tags": ["headwater", *task.airflow.tags],
        "default_args": {
            name: value
            for name, value in (("owner", task.airflow.owner), ("queue", task.airflow.queue))
            if value is not None
        },
    }


def run_callbacks(task: PipelineTask) -> dict[str, Any]:
    """The notifiers of the spec as callbacks of a DAG: called when a run has failed, or has ended well."""
    callbacks: dict[str, Any] = {}
    for outcome in ("failure", "success"):
        notifiers = notifiers_on(task.airflow.notifiers, outcome)
        if notifiers:
            callbacks[f"on_{outcome}_callback"] = RunCallback(task.dag_id, outcome, tuple(notifiers))
    return callbacks


def _schedule(task: PipelineTask) -> str | list[PipelineDataAsset] | None:
    return [data_asset(task.pipeline, task.airflow.on_data)] if task.schedule == ON_DATA else task.schedule


def _task(pipeline: str | PipelineTask) -> PipelineTask:
    if isinstance(pipeline, PipelineTask):
        return pipeline
    return read_pipeline(pipeline, pipeline_project(pipeline))
