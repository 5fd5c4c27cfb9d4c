"""All DAGs of all pipelines, by one call in one file.

from headwater_airflow.pipelines import pipeline_dags

globals().update(pipeline_dags())
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from airflow.sdk import DAG, get_parsing_context

from headwater.definitions.airflow_spec import DagKind
from headwater.definitions.pipeline_spec import PipelineSpec
from headwater.errors import HeadwaterError, InvalidSpec
from headwater.event_log.redaction import quoted
from headwater.graph.pipeline_ids import may_have_id
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.spec_file import SPEC_FILES
from headwater_airflow.dag import (
    PipelineBackfillDag,
    PipelineCheckDag,
    PipelineDag,
    PipelineMaintenanceDag,
    PipelineRepairDag,
)
from headwater_airflow.entities import PipelineTask, read_pipeline
from headwater_airflow.import_errors import record_import_errors
from headwater_airflow.roots import pipeline_folders, pipeline_project, pipeline_root, require_pipeline_root


def _backfill_dag(task: PipelineTask, **settings: Any) -> DAG:
    spec = task.airflow.backfill
    return PipelineBackfillDag(
        task,
        interval=spec.interval,
        tables=spec.tables,
        column=spec.column,
        scheduled=spec.scheduled,
        **settings,
    )


_KINDS: dict[DagKind, tuple[str, Callable[..., DAG]]] = {
    "update": ("", PipelineDag),
    "checks": ("_checks", PipelineCheckDag),
    "maintenance": ("_maintenance", PipelineMaintenanceDag),
    "backfill": ("_backfill", _backfill_dag),
    "repair": ("_repair", PipelineRepairDag),
}


def pipeline_dags(environment: Mapping[str, str] = os.environ) -> dict[str, DAG]:
    """Make the DAGs of every pipeline below HEADWATER_PIPELINES: those that ``airflow.dags`` of its spec names, by default all.

    What is wrong with a pipeline becomes an import error of its own, ``pipelines.py (orders)``, and the pipeline has no
    DAGs until it is right again; all others have theirs. Where two pipelines want one DAG id, the first folder has it.
    The process of a task makes only the DAG that it needs.

    Returns:
        The DAGs, for the globals of the calling file: Airflow finds them there.

    Raises:
        PipelineNotFound: there is no such folder; an import error of the file, where all DAGs would be gone without a word.

    """
    wanted = get_parsing_context().dag_id
    require_pipeline_root(environment)
    folders = pipeline_folders(environment)
    dags: dict[str, DAG] = {}
    makers: dict[str, str] = {}
    if wanted is not None:
        folders = [folder for folder in folders if _may_make(folder, wanted, environment)]
    errors: dict[str, str] = {}
    for folder, project in _projects(folders, environment, errors):
        if wanted is not None and wanted not in dag_ids(project.spec):
            continue
        try:
            made = _dags_of(read_pipeline(folder, project), makers, wanted)
        except Exception as error:
            errors[folder] = _in_words(error)
        else:
            dags |= made
            makers |= dict.fromkeys(made, folder)
    if wanted not in dags:
        # Also in the process of a task: it ends for want of its DAG, and its log has to say why that is.
        record_import_errors(errors)
    # Behind a sign that no name of a module has: a pipeline may be called like one of them.
    return {f"dag:{dag_id}": dag for dag_id, dag in dags.items()}


def dag_ids(spec: PipelineSpec) -> list[str]:
    """The ids of the DAGs that a pipeline has."""
    return [f"{spec.dag_id}{suffix}" for kind, (suffix, _) in _KINDS.items() if kind in spec.airflow.dags]


def _dags_of(task: PipelineTask, makers: Mapping[str, str], wanted: str | None) -> dict[str, DAG]:
    dags: dict[str, DAG] = {}
    for kind, (suffix, make) in _KINDS.items():
        dag_id = f"{task.dag_id}{suffix}"
        if kind not in task.airflow.dags or wanted not in (None, dag_id):
            continue
        if dag_id in makers:
            raise InvalidSpec(
                f"The DAG id {dag_id!r} is that of a DAG of the pipeline in {makers[dag_id]!r}.",
                remedy="Give this pipeline another `airflow.dag_id`.",
            )
        dags[dag_id] = _made(make, task, dag_id)
    return dags


def _made(make: Callable[..., DAG], task: PipelineTask, dag_id: str) -> DAG:
    try:
        # Airflow would register what is refused below, too.
        dag = make(task, auto_register=False)
        # What Airflow looks at later, it records under the file's name, and takes all DAGs of the file off the schedule.
        dag.validate()
    except HeadwaterError:
        raise
    except Exception as error:
        airflow = task.airflow
        schedules = (
            airflow.schedule,
            airflow.check_schedule,
            airflow.maintenance_schedule,
            airflow.backfill.interval,
        )
        written = ", ".join(repr(schedule) for schedule in schedules if schedule is not None)
        raise InvalidSpec(
            f"Airflow refuses the DAG {dag_id!r}: {quoted(error)}",
            where=f"{task.pipeline}/pipeline.yml",
            remedy=f"Correct its section `airflow`: the schedules ({written}), tags, owner or pool.",
        ) from error
    return dag


def _projects(
    folders: list[str], environment: Mapping[str, str], errors: dict[str, str]
) -> Iterator[tuple[str, PipelineProject]]:
    """The pipelines that can be read; the others' trouble goes to ``errors``."""
    projects: dict[str, PipelineProject] = {}
    for folder in folders:
        try:
            projects[folder] = pipeline_project(folder, environment, alone=True)
        except Exception as error:
            errors[folder] = _in_words(error)
    counts = Counter(project.pipeline_id for project in projects.values())
    for folder, project in projects.items():
        if counts[project.pipeline_id] > 1:
            try:
                pipeline_project(folder, environment)
            except HeadwaterError as error:
                errors[folder] = _in_words(error)
                continue
        yield folder, project


def _may_make(folder: str, dag_id: str, environment: Mapping[str, str]) -> bool:
    """Whether a pipeline may have this DAG: its own id is the DAG's, without the word of its kind."""
    file = pipeline_root(environment) / folder
    ids = {dag_id.removesuffix(suffix) for suffix, _ in _KINDS.values()}
    return any(may_have_id(f"{file}/{name}", pipeline_id) for name in SPEC_FILES for pipeline_id in ids)


def _in_words(error: Exception) -> str:
    return str(error) if isinstance(error, HeadwaterError) else quoted(error)
