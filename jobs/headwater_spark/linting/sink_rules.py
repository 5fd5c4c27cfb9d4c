"""What functions of sinks do with their batches: HW404."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headwater.definitions.finding import Finding, finding
from headwater.definitions.sink import SinkKind
from headwater.definitions.source_location import SourceLocation
from headwater_spark.linting.definition_text import SourceFile
from headwater_spark.resolution.graph_resolution import ResolvedPipeline


def fixed_transaction_ids(pipeline: ResolvedPipeline, files: Mapping[str, SourceFile]) -> Iterator[Finding]:
    """HW404."""
    for dataset in pipeline.registry.datasets():
        where = dataset.location
        if dataset.sink is None or dataset.sink.kind is not SinkKind.FUNCTION or where is None:
            continue
        file = files.get(where.file)
        lines = file.fixed_options(where.line, "txnAppId") if file is not None else []
        if lines:
            yield finding(
                "HW404",
                "txnAppId is the same text for every flow and for ever. Numbers of batches begin at 0 for each flow, and again after a "
                "full refresh: Delta passes over a batch whose number it has seen under this id, without a word.",
                'Take the id that belongs to the flow: batch_df.sparkSession.conf.get("headwater.txnAppId").',
                SourceLocation(where.file, lines[0]),
                dataset.name,
            )
