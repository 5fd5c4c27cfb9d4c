"""A pipeline as tasks, before anything of Airflow is known: read from ``pipeline.yml`` and the manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headwater.definitions.airflow_spec import AirflowSpec
from headwater.definitions.dataset import DatasetKind
from headwater.definitions.dataset_name import DatasetName
from headwater.definitions.parameter import ParameterSpec
from headwater.definitions.trigger import Continuous, ProcessingTime
from headwater.errors import HeadwaterError
from headwater.graph.declared_schedule import schedule_of
from headwater.graph.manifest import FILE_NAME, DatasetEntry, Manifest, read_manifest
from headwater.graph.pipeline_project import PipelineProject

UPDATE_TASK_ID = "update"


@dataclass(frozen=True)
class DatasetTask:
    """A table or sink: ``location`` is ``[catalog/]schema/table``, ``upstream`` the nearest tables it reads."""

    dataset: str
    task_id: str
    location: str
    upstream: tuple[str, ...] = ()
    comment: str | None = None
    is_table: bool = True


@dataclass(frozen=True)
class PipelineTask:
    """A whole pipeline. ``without_graph`` says why there are no ``datasets``, where there should be some; ``announced``: the tables
    of a manifest that is older than the sources, which DAGs may wait for all the same.

    ``continuous``: an update does not end by itself. ``has_interval``: whether its streams look for data at an interval that
    somebody chose.
    """

    pipeline: str
    pipeline_id: str
    dag_id: str
    name: str
    airflow: AirflowSpec
    schedule: str | None = None
    datasets: tuple[DatasetTask, ...] = ()
    manifest: Manifest | None = None
    without_graph: str | None = None
    announced: tuple[DatasetTask, ...] = ()
    parameters: Mapping[str, ParameterSpec] = field(default_factory=dict)
    continuous: bool = False
    has_interval: bool = False

    @property
    def has_pace_limit(self) -> bool:
        """Whether batches have a limit of time: one that is given, or else the interval of the trigger."""
        alerts = self.airflow.alerts
        given = "batch_seconds" in alerts.model_fields_set
        return alerts.batch_seconds is not None if given else self.has_interval


def read_pipeline(pipeline: str, project: PipelineProject) -> PipelineTask:
    """The tasks of a pipeline; a manifest that is missing, broken or older than the sources gives no datasets.

    ``pipeline``: the name of its folder.
    """
    manifest, trouble = _usable_manifest(project)
    return PipelineTask(
        pipeline,
        project.pipeline_id,
        project.spec.dag_id,
        project.spec.name,
        project.spec.airflow.model_copy(update={"retries": project.spec.update_retries}),
        schedule_of(project.spec, _last_manifest(project)),
        _dataset_tasks(manifest) if manifest else (),
        manifest,
        trouble,
        () if manifest else tuple(table for table in known_tables(project) if table.is_table),
        project.spec.parameters,
        isinstance(project.spec.trigger, Continuous),
        isinstance(project.spec.trigger, ProcessingTime),
    )


def known_tables(project: PipelineProject) -> tuple[DatasetTask, ...]:
    """The tables and sinks of the committed manifest, also where it is older than the sources."""
    manifest = _last_manifest(project)
    return _dataset_tasks(manifest) if manifest else ()


def _last_manifest(project: PipelineProject) -> Manifest | None:
    """The manifest even where it is older than the sources: a schedule must not go because a source was edited."""
    try:
        return read_manifest(project.folder / FILE_NAME)
    except (HeadwaterError, OSError):
        return None


def _usable_manifest(project: PipelineProject) -> tuple[Manifest | None, str | None]:
    remedy = f"Write it with `python -m headwater validate {_shown(project.folder)}` and commit it."
    try:
        manifest = read_manifest(project.folder / FILE_NAME)
        if manifest is None:
            return (
                None,
                f"There is no {FILE_NAME} beside pipeline.yml, so the tables are not known, and no DAG that waits for one is woken. {remedy}",
            )
        if not manifest.fits(project):
            return (
                None,
                f"{FILE_NAME} is older than the sources, so the tables may be others. DAGs that wait for one that it names are woken when the whole update has ended well. {remedy}",
            )
    except (HeadwaterError, OSError) as error:
        return None, f"{FILE_NAME} can't be used: {getattr(error, 'what', error)} {remedy}"
    return manifest, None


def _shown(folder: Path) -> str:
    # The last parts only: the text becomes part of the DAG, which must be the same on every machine.
    return "/".join(folder.parts[-3:])


def _dataset_tasks(manifest: Manifest) -> tuple[DatasetTask, ...]:
    taken = {UPDATE_TASK_ID}
    return tuple(
        DatasetTask(
            entry.name,
            _task_id(entry.name, taken),
            table_location(manifest, entry),
            tuple(manifest.upstream(entry.name)),
            entry.comment,
            entry.kind is not DatasetKind.SINK,
        )
        for entry in manifest.outputs
    )


def table_location(manifest: Manifest, entry: DatasetEntry) -> str:
    """``[catalog/]schema/table`` of a stored dataset, also where its folder was chosen by hand."""
    name = DatasetName.parse(entry.name, catalog=manifest.catalog, schema=manifest.schema_name)
    return name.location


def _task_id(dataset: str, taken: set[str]) -> str:
    task_id = dataset.replace(".", "__")
    while task_id in taken:
        task_id += "_"
    taken.add(task_id)
    return task_id
