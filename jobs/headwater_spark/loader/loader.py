"""From source files to a registry of definitions."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from pyspark import cloudpickle
from pyspark.sql.functions import udf

from headwater.definitions.clock_at_load import note_clocked
from headwater.errors import HeadwaterError, InvalidPipeline, SourceFileFailed
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.registry import Registry, registering
from headwater.graph.required_sources import required_sources
from headwater.sql_sources.source import SqlSource
from headwater_spark.facade.action_guard import loading_sources
from headwater_spark.loader.compilation import compile_source, forget_text, show_in_tracebacks
from headwater_spark.loader.import_rewriting import RUNTIME_NAMES
from headwater_spark.loader.pipeline_modules import SOURCES, pipeline_modules
from headwater_spark.loader.shims import runtime_names
from headwater_spark.loader.source_text import SourceText, read_sources
from headwater_spark.loader.sql_declarations import declare_source
from headwater_spark.messages.exception_text import Cause
from headwater_spark.messages.known_exceptions import hint_for
from headwater_spark.messages.source_errors import describe, name_meant, user_location


@dataclass(frozen=True)
class LoadedSources:
    """The names of the pipeline's sources in tracebacks."""

    labels: frozenset[str]


@contextmanager
def loaded_sources(project: PipelineProject, registry: Registry, spark: Any) -> Iterator[LoadedSources]:
    """Run every source of the pipeline; declarations go to ``registry``, the global ``spark`` is the facade.

    Inside the block, functions of the sources may still import modules of their pipeline.

    Raises:
        InvalidPipeline: where there are no sources, or they declare nothing.
        SourceFileFailed: where a source raises, with the user's own line.
    """
    files = required_sources(project)
    names = names_of_sources(spark, project.configuration)
    folders = list(dict.fromkeys([project.folder, *(path.parent for path in files)]))
    labels = {str(path) for path in project.folder.rglob("*.py")}
    with pipeline_modules(folders, names), registering(registry):
        for path in files:
            units = read_sources(path, project.folder)
            labels.update(unit.label for unit in units)
            python = [unit for unit in units if unit.language == "python"]
            run_source(project.folder, path, python, names, labels)
            if path.suffix.lower() == ".sql":
                forget_text(str(path))
            for unit in units:
                if unit.language == "sql":
                    if unit.label != str(path):  # else the file itself is there to be looked up
                        show_in_tracebacks(unit)
                    declare_source(SqlSource(unit.label, unit.text), registry, spark, project.configuration)
        if not registry.datasets() and not registry.flows():
            raise InvalidPipeline(
                "The sources declare no dataset.",
                where=project.folder,
                remedy="Decorate a function with @dp.table or @dp.materialized_view, or write CREATE OR REFRESH STREAMING TABLE.",
            )
        yield LoadedSources(frozenset(labels))


def names_of_sources(spark: Any, configuration: Mapping[str, str]) -> dict[str, Any]:
    """The globals that every source finds; ``spark``: the facade, or None where there is no session."""
    names = runtime_names(spark, configuration)
    # What `from databricks.sdk.runtime import ...` and `from pyspark.dbutils import DBUtils` may ask for.
    platform = {"DBUtils": lambda *_: names["dbutils"], "udf": udf}
    if spark is not None:
        platform |= {"sql": spark.sql, "table": spark.table}
    names[RUNTIME_NAMES] = {**names, **platform}
    return names


def run_source(
    folder: Path, path: Path, units: list[SourceText], names: Mapping[str, Any], labels: set[str]
) -> ModuleType:
    """Run the units of a source in one module; raises SourceFileFailed with the user's line. ``labels``: the sources' names in tracebacks."""
    dotted = path.relative_to(folder).with_suffix("").as_posix().replace("/", ".")
    module = ModuleType(f"{SOURCES}{dotted}")
    module.__file__ = str(path)
    vars(module).update(names)
    # Registered, because dataclasses look up their module; by value, because workers can't import it.
    sys.modules[module.__name__] = module
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    try:
        with loading_sources():
            for unit in units:
                exec(compile_source(unit), vars(module))  # noqa: S102 - running the user's sources is the loader's work
                note_clocked(vars(module), unit.text)
    except HeadwaterError as error:
        if not error.where:
            error.where = str(user_location(error.__traceback__, labels) or path)
        raise
    except (Exception, SystemExit) as error:  # an exit would end the update as if all were well
        where = user_location(error.__traceback__, labels) or path
        raise SourceFileFailed(
            describe(error),
            where=where,
            remedy=hint_for([Cause(type(error).__name__, str(error))])
            or name_meant(error)
            or "Correct the source and run again.",
        ) from error
    return module
