"""What a test names as its source, as a project whose tables and checkpoints lie in a folder of the test's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from pyspark.sql import SparkSession

from headwater.definitions.pipeline_spec import FilePath, Library, PipelineSpec
from headwater.errors import PipelineNotFound
from headwater.graph.pipeline_project import SOURCE_SUFFIXES, PipelineProject, open_project
from headwater.graph.spec_file import SPEC_FILES

Source = str | Path | ModuleType

# The test's session has its own; they are about size, not about results.
_OF_THE_CLUSTER = ("spark.sql.shuffle.partitions", "spark.master")


def project_under_test(
    source: Source, workspace: Path, configuration: Mapping[str, str] | None, spark: SparkSession
) -> PipelineProject:
    """The project of a pipeline's folder, of one source file of it, of a lone source file, or of a module's file."""
    path = Path(str(source.__file__) if isinstance(source, ModuleType) else source).resolve()
    if path.is_dir():
        project = _of_folder(path, workspace)
    elif path.is_file() and path.suffix.lower() in SOURCE_SUFFIXES:
        project = _of_file(path, workspace)
    else:
        raise PipelineNotFound(
            f"{path} is neither a pipeline's folder nor a source file.",
            remedy="Give the folder of pipeline.yml, a .py, .sql or .ipynb file, or an imported module.",
        )
    settings = {
        key: value for key, value in project.spec.spark.items()
        if key not in _OF_THE_CLUSTER and spark.conf.isModifiable(key)
    }  # fmt: skip
    # The session is shared by all tests: settings go to the clone that this run has, as the configuration does.
    # Tables of a test are registered nowhere.
    spec = project.spec.model_copy(update={"spark": {}, "trigger_spec": "available_now", "metastore": None})
    return replace(project, spec=spec, parameters={**settings, **(configuration or {})})


def _of_folder(folder: Path, workspace: Path) -> PipelineProject:
    return open_project(folder, storage=workspace / "storage", warehouse=workspace / "warehouse")


def _of_file(path: Path, workspace: Path) -> PipelineProject:
    for folder in path.parents:
        if any((folder / name).is_file() for name in SPEC_FILES):
            project = _of_folder(folder, workspace)
            only = (Library(file=FilePath(path=path.relative_to(folder).as_posix())),)
            return replace(project, spec=project.spec.model_copy(update={"libraries": only}))
    spec_file = workspace / "pipeline.yml"
    spec_file.write_text("name: test\n", encoding="utf-8")
    spec = PipelineSpec(name="test", libraries=(Library(file=FilePath(path=path.name)),))
    return PipelineProject(path.parent, spec_file, spec, workspace / "storage", workspace / "warehouse", {})
