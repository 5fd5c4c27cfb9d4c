"""Reading datasets by name from inside a pipeline's functions."""

from __future__ import annotations

from typing import Any

from headwater.declarations.keywords import checked_arguments
from headwater.definitions.source_location import caller_location
from headwater.errors import UsageError
from headwater.graph.registry import PipelineReader, active_registry


def _reader(call: str) -> PipelineReader:
    registry = active_registry()
    if registry is None or registry.reader is None:
        raise UsageError(
            f"{call} reads a dataset of a pipeline, and no pipeline is running here.",
            where=caller_location(),
            remedy="Run the pipeline with `python -m headwater run DIR`, or pass a DataFrame to the function you test.",
        )
    return registry.reader


@checked_arguments
def read(name: str) -> Any:
    """A dataset of this pipeline (or an existing table) as a batch DataFrame. Same as ``spark.read.table(name)``."""
    return _reader(f"dp.read({name!r})").read_dataset(name)


@checked_arguments
def read_stream(name: str) -> Any:
    """A dataset of this pipeline (or an existing table) as a streaming DataFrame. Same as ``spark.readStream.table``."""
    return _reader(f"dp.read_stream({name!r})").read_dataset_stream(name)
