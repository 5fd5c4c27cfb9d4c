"""Where pipelines lie, told by the environment, so that no path of a machine gets into a serialized DAG."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from headwater.errors import InvalidName
from headwater.graph.pipeline_project import PipelineProject, open_project

_FOLDER_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,127}")


def home_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """The checkout: HEADWATER_HOME, else the folder that holds ``plugins/``."""
    chosen = environment.get("HEADWATER_HOME")
    return Path(chosen).expanduser().resolve() if chosen else Path(__file__).resolve().parents[2]


def pipeline_project(pipeline: str, environment: Mapping[str, str] = os.environ) -> PipelineProject:
    """The pipeline in the folder of this name below HEADWATER_PIPELINES (``jobs/pipelines`` of the checkout).

    Relative roots count from the checkout, because Airflow's processes have working directories of their own.

    Raises:
        InvalidName: if ``pipeline`` is not one plain folder name.
        PipelineNotFound, InvalidSpec: as ``open_project`` does.

    """
    if not _FOLDER_NAME.fullmatch(pipeline):
        raise InvalidName(
            f"{pipeline!r} can't name a pipeline.",
            remedy="Give the name of its folder: letters, digits, underscores and dashes.",
        )
    home = home_folder(environment)
    pipelines = home / environment.get("HEADWATER_PIPELINES", "jobs/pipelines")
    storage = _from_home(home, environment.get("HEADWATER_STORAGE"))
    warehouse = _from_home(home, environment.get("HEADWATER_WAREHOUSE"))
    project = open_project(
        pipelines / pipeline,
        storage=storage,
        warehouse=warehouse or home / ".headwater/warehouse",
        environment=environment,
    )
    if storage is None and project.spec.storage is None:
        project = replace(project, storage=home / ".headwater/storage")
    return project


def _from_home(home: Path, value: str | None) -> str | None:
    if not value or "://" in value or value.startswith("file:"):
        return value or None
    return str(home / value)
