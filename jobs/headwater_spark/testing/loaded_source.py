"""A source as a module, so that a test can call its functions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from pyspark.sql import SparkSession

from headwater.errors import PipelineNotFound
from headwater.graph.spec_file import SPEC_FILES
from headwater_spark.loader.loader import names_of_sources, run_source
from headwater_spark.loader.pipeline_modules import pipeline_modules
from headwater_spark.loader.source_text import read_sources

_WITH_FUNCTIONS = (".py", ".ipynb")


def load_source(path: str | Path, *, configuration: Mapping[str, str] | None = None) -> ModuleType:
    """Run a source as an update does, with nothing declared: what its decorators stand on are plain functions.

    Args:
        path: a ``.py`` or ``.ipynb`` file, with the imports of Lakeflow, Spark's pipelines or Headwater.
        configuration: values for ``dbutils.widgets``.

    The global ``spark`` is the process's session, None where none was started.

    Raises:
        PipelineNotFound: there is no such file of Python.
        SourceFileFailed: it raises, with its line.
    """
    file = Path(path).resolve()
    if not file.is_file() or file.suffix.lower() not in _WITH_FUNCTIONS:
        raise PipelineNotFound(
            f"{file} is no source with functions.",
            remedy="Give a .py or .ipynb file; run_dataset takes .sql files, too.",
        )
    folder = next(
        (above for above in file.parents if any((above / name).is_file() for name in SPEC_FILES)), file.parent
    )
    units = [unit for unit in read_sources(file, folder) if unit.language == "python"]
    names = names_of_sources(SparkSession.getActiveSession(), configuration or {})
    with pipeline_modules(list(dict.fromkeys([folder, file.parent])), names):
        return run_source(folder, file, units, names, {str(file), *(unit.label for unit in units)})
