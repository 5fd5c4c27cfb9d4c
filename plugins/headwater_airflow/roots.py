"""Where pipelines lie, taken from the environment, so that no machine's path gets into a serialized DAG."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from headwater.definitions.dataset_name import DatasetName
from headwater.definitions.names import invalid_name, is_folder_name
from headwater.errors import InvalidName, PipelineNotFound
from headwater.graph.pipeline_ids import refuse_shared_id
from headwater.graph.pipeline_project import PipelineProject, local_path, open_project
from headwater.graph.spec_file import SPEC_FILES
from headwater.runtime.object_store import scheme_of_root
from headwater.storage.access import object_store
from headwater.storage.place import Place, is_url, place_of
from headwater_airflow.store_connection import store_login


def home_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """The checkout: HEADWATER_HOME, else the folder that holds ``plugins/``."""
    chosen = environment.get("HEADWATER_HOME")
    return Path(chosen).expanduser().resolve() if chosen else Path(__file__).resolve().parents[2]


def pipeline_root(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder of all pipelines: HEADWATER_PIPELINES, from the checkout, else its ``jobs/pipelines``."""
    chosen = environment.get("HEADWATER_PIPELINES") or "jobs/pipelines"
    return home_folder(environment) / chosen


def pipeline_project(
    pipeline: str,
    environment: Mapping[str, str] = os.environ,
    *,
    alone: bool = False,
    parameters: Mapping[str, object] | None = None,
) -> PipelineProject:
    """The pipeline in the folder of this name below HEADWATER_PIPELINES (``jobs/pipelines`` of the checkout).

    Relative roots count from the checkout, because Airflow's processes have working directories of their own.
    ``alone``: do not look whether another folder has a pipeline of the same id. ``parameters``: values for one run.

    Raises:
        InvalidName: if ``pipeline`` is not one plain folder name.
        InvalidParameter: if a value does not fit its parameter.
        PipelineNotFound, InvalidSpec, PipelineIdTaken: as ``open_project`` does.

    """
    if not is_folder_name(pipeline):
        raise invalid_name(
            pipeline,
            "pipeline",
            remedy="Give the name of its folder: letters, digits, underscores and dashes.",
        )
    home = home_folder(environment)
    pipelines = pipeline_root(environment)
    storage = _from_home(home, environment.get("HEADWATER_STORAGE"))
    warehouse = _from_home(home, environment.get("HEADWATER_WAREHOUSE"))
    project = open_project(
        pipelines / pipeline,
        storage=storage,
        warehouse=warehouse or home / ".headwater/warehouse",
        parameters=parameters,
        environment=environment,
        alone=True,
        login_of=lambda name: store_login(name, environment),
    )
    if not alone:  # whatever their storages: the id names the DAG as well
        refuse_shared_id(pipelines / pipeline, project.pipeline_id, environment)
    if storage is None and project.spec.storage is None:
        project = replace(project, storage=home / ".headwater/storage")
    return project


def pipeline_folders(environment: Mapping[str, str] = os.environ) -> list[str]:
    """The names of the folders below HEADWATER_PIPELINES that have a spec, sorted; empty where there is no such root.

    Also of those whose name can't be a pipeline's: opening one says so. One with a dot was put aside (orders.old, .git).
    """
    try:
        entries = list(os.scandir(pipeline_root(environment)))
    except (FileNotFoundError, NotADirectoryError):
        return []
    named = [entry for entry in entries if "." not in entry.name and _has_spec(entry)]
    # A name that is no UTF-8 could be shown nowhere.
    return sorted(entry.name.encode("utf-8", "backslashreplace").decode() for entry in named)


def require_pipeline_root(environment: Mapping[str, str] = os.environ) -> None:
    """Raise PipelineNotFound where the folder of pipelines is not there: that none has a pipeline is something else."""
    root = pipeline_root(environment)
    if not root.is_dir():
        raise PipelineNotFound(
            "There is no folder of pipelines, so no pipeline has a DAG.",
            where=root,
            remedy="Set HEADWATER_PIPELINES to it where DAGs are parsed and where tasks run (and HEADWATER_HOME to the checkout), "
            "or mount it again.",
        )


def _has_spec(entry: os.DirEntry[str]) -> bool:
    try:
        if entry.is_symlink() and not os.path.exists(entry.path):  # noqa: PTH110 - many pipelines
            return True  # a mount that was lost takes a pipeline away: that is said, too
        return entry.is_dir() and any(os.path.lexists(f"{entry.path}/{name}") for name in SPEC_FILES)
    except OSError:
        return True  # opening it says why it can't be read


def storage_folder(environment: Mapping[str, str] = os.environ) -> Place:
    """Where Headwater keeps what must outlive a run: HEADWATER_STORAGE, else ``.headwater/storage`` of the checkout."""
    return _root("HEADWATER_STORAGE", ".headwater/storage", environment)


def warehouse_table(name: str, environment: Mapping[str, str] = os.environ) -> Place:
    """The folder of the table ``[catalog.]schema.table`` below HEADWATER_WAREHOUSE.

    Raises:
        InvalidName: if the name has no schema, or a part of it is not a plain name.

    """
    warehouse = _root("HEADWATER_WAREHOUSE", ".headwater/warehouse", environment)
    return warehouse / table_name(name).location


def table_name(name: str) -> DatasetName:
    """The parts of ``[catalog.]schema.table``.

    Raises:
        InvalidName: if the name has no schema, or a part of it is not a plain name.

    """
    parsed = DatasetName.parse(name, catalog=None, schema="")
    if not parsed.schema:
        raise InvalidName(f"{name!r} does not say which schema.", remedy="Write it as schema.table.")
    return parsed


def _root(variable: str, default: str, environment: Mapping[str, str]) -> Place:
    chosen = environment.get(variable) or default
    if is_url(chosen):
        scheme = scheme_of_root(chosen)
        login = store_login(None, environment) if scheme == "s3" else None
        return place_of(chosen, store=object_store(scheme, environment=environment, login=login))
    return home_folder(environment) / local_path(chosen)


def _from_home(home: Path, value: str | None) -> str | None:
    if not value or "://" in value or value.startswith("file:"):
        return value or None
    return str(home / value)
