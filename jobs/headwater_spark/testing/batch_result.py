"""The result that a dataset's definition has as a batch: every read bounded, every function called once over all rows.

Decision 0052.
"""

from __future__ import annotations

import itertools
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from headwater.definitions.dataset import Dataset
from headwater.definitions.expectation import needs_judgement
from headwater.graph.pipeline_project import PipelineProject
from headwater.graph.registry import Registry
from headwater.storage.place import local_only
from headwater_spark.facade.action_guard import install_action_guard
from headwater_spark.facade.pipeline_session import PipelineBatchReader, PipelineSession, PipelineStreamReader
from headwater_spark.facade.source_substitutes import substituting
from headwater_spark.loader.loader import loaded_sources
from headwater_spark.resolution.evaluation import Evaluation
from headwater_spark.resolution.graph_resolution import session_of_sources
from headwater_spark.rules.expectations import apply_expectations
from headwater_spark.rules.judgement import compare_rows, kept_rows, mark_rows
from headwater_spark.testing.bounded_frames import bounded_deduplication
from headwater_spark.testing.given_sources import RowsInPlace
from headwater_spark.testing.local_session import local_session


class BatchEvaluation(Evaluation):
    """Evaluates functions as one batch query: a dataset that they read is put in as its own query."""

    _numbers = itertools.count(1)

    def batch(self, name: str, reader: PipelineBatchReader) -> DataFrame:
        """The rows of a dataset, from its own functions."""
        dataset = self.names.dataset(name)
        if dataset is None:
            return self.names.external(name, reader.frame_at, reader.catalog_table, at_import=False)
        self._record(dataset, name)
        return self.frame_of(dataset)

    def stream(self, name: str, reader: PipelineStreamReader) -> DataFrame:
        """As ``batch``: all that a stream would bring."""
        return self.batch(name, reader)  # type: ignore[arg-type]  # a bounded reader is a batch reader

    def schema_of(self, dataset: Dataset) -> StructType:
        """The columns of the batch result."""
        return self.frame_of(dataset).schema

    def frame_of(self, dataset: Dataset) -> DataFrame:
        """What all flows of a dataset give together, with its expectations."""
        with self._entered(dataset):
            frames = [self.evaluate(flow) for flow in self.flows_of(dataset)]
        frame = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)
        if needs_judgement(dataset.expectations):
            rules = dataset.expectations
            return kept_rows(compare_rows(mark_rows(frame, rules), rules), rules)
        return apply_expectations(frame, dataset.expectations, f"batch_{next(self._numbers)}")


def batch_rows(
    project: PipelineProject, sources: RowsInPlace, dataset: str, where: str | None
) -> list[dict[str, Any]]:
    """The rows of a dataset as a batch over all that was given."""
    install_action_guard()
    sources.bounded = True
    registry = Registry(catalog=project.spec.catalog, schema=project.spec.schema)
    try:
        with substituting(sources), bounded_deduplication():
            session = PipelineSession.over(local_session())
            for key, value in project.configuration.items():
                session.conf.set(key, value)
            evaluation = BatchEvaluation(
                registry,
                session,
                project.warehouse,
                project.configuration,
                local_only(project.storage, "A test") / "stubs",
                project.state_folder,
            )
            with session_of_sources(session), loaded_sources(project, registry, session) as loaded:
                evaluation.labels = loaded.labels
                sources.narrow(registry, evaluation)
                declared = next(d for d in registry.datasets() if d.name == dataset)
                frame = evaluation.frame_of(declared)
                rows: list[dict[str, Any]] = (frame.where(where) if where else frame).toArrow().to_pylist()
                return rows
    finally:
        sources.bounded = False
