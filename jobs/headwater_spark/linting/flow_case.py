from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame

from headwater.definitions.dataset import Dataset, DatasetKind
from headwater.definitions.finding import Finding, finding
from headwater.definitions.flow import Flow
from headwater.definitions.source_location import SourceLocation
from headwater.graph.query_settings import views_in
from headwater.storage.place import is_below
from headwater_spark.linting.definition_text import SourceFile
from headwater_spark.plans.plan_walk import items, pair_of, plan_leaves, plan_nodes, simple_name
from headwater_spark.resolution.graph_resolution import ResolvedPipeline


@dataclass(frozen=True)
class StreamLeaf:
    """A streaming source in a plan: its format as Spark calls it, its options with lower-case keys."""

    format: str
    options: Mapping[str, str]

    @property
    def path(self) -> str:
        """The folder that it reads, or nothing."""
        return self.options.get("path", "").removeprefix("file:")


@dataclass(frozen=True)
class FlowCase:
    """A flow as the rules see it."""

    pipeline: ResolvedPipeline
    dataset: Dataset
    flow: Flow
    files: Mapping[str, SourceFile]

    @property
    def frame(self) -> DataFrame:
        """The flow's frame over stand-ins."""
        return self.pipeline.evaluation.frames[self.flow.name]

    @cached_property
    def nodes(self) -> list[Any]:
        """The operators of the analysed plan."""
        return list(plan_nodes(self.frame._jdf.queryExecution().analyzed()))  # noqa: SLF001 - no public face in Python

    def nodes_of(self, *names: str) -> list[Any]:
        """The streaming operators of these classes."""
        return [n for n in self.nodes if simple_name(n) in names and n.isStreaming()]

    @cached_property
    def stream_leaves(self) -> list[StreamLeaf]:
        """The streams that the flow reads."""
        plan = self.frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - no public face in Python
        leaves = []
        for node in plan_leaves(plan):
            kind = simple_name(node)
            if kind == "StreamingRelation":
                source = node.dataSource()
                options = dict(pair_of(pair) for pair in items(source.options().toSeq()))
                leaves.append(_leaf(str(source.className()), options))
            elif kind == "StreamingRelationV2":
                options = {str(key): str(value) for key, value in dict(node.extraOptions()).items()}
                leaves.append(_leaf(str(node.sourceName()), options))
        return leaves

    @property
    def views(self) -> list[Dataset]:
        """The temporary views that are a part of the flow's query."""
        pipeline = self.pipeline
        datasets = {dataset.name: dataset for dataset in pipeline.registry.datasets()}
        flows = [(datasets[flow.target], flow) for flow in pipeline.registry.flows()]
        views = {d.name: flow for d, flow in flows if d.kind is DatasetKind.TEMPORARY_VIEW}
        names = views_in(self.flow.name, views, pipeline.evaluation.reads_of)
        return [datasets[view.target] for view in names]

    @property
    def source(self) -> tuple[SourceLocation, SourceFile] | None:
        """The function's first line, and the file that it is in."""
        where = self.flow.location
        file = self.files.get(where.file) if where is not None else None
        return (where, file) if where is not None and file is not None else None

    def find(self, code: str, message: str, remedy: str, calls: Collection[str] = ()) -> Finding:
        """A finding at the one call of these methods in the function, or else at the function."""
        where = self.flow.location
        if self.source is not None and calls:
            where, file = self.source
            lines = sorted(set(file.calls(where.line, calls)))
            where = SourceLocation(where.file, lines[0]) if len(lines) == 1 else where
        return finding(code, message, remedy, where, self.dataset.name)

    def is_stub(self, path: str) -> bool:
        """Whether a path stands for one of the pipeline's own datasets."""
        return is_below(Path(path), self.pipeline.evaluation.stubs)


def _leaf(source: str, options: Mapping[str, str]) -> StreamLeaf:
    return StreamLeaf(source.lower(), {key.lower(): value for key, value in options.items()})


def watermark_of(attribute: Any) -> bool:
    """Whether an expression of a plan carries a watermark."""
    try:
        return bool(attribute.metadata().contains("spark.watermarkDelayMs"))
    except Py4JError:  # only named expressions have metadata
        return False
