"""Where a dataset's rows land, and how to know it again: a table of the pipeline, or what a sink stands for."""

from __future__ import annotations

from pathlib import Path

from headwater.definitions.dataset import Dataset
from headwater.definitions.sink import SinkKind
from headwater.delta_log.table_history import readable_table_id
from headwater.doctor import start_facts as starts
from headwater_spark.execution.update_context import UpdateContext


def delta_table(context: UpdateContext, dataset: Dataset) -> Path | None:
    """The folder of the Delta table that the rows go to, None where they go elsewhere."""
    if dataset.sink is not None and dataset.sink.kind is not SinkKind.DELTA:
        return None
    return context.table_path(dataset)


def destination_id(context: UpdateContext, dataset: Dataset) -> str | None:
    """What stays the same as long as rows go to the same place, as a checkpoint keeps it and checks compare it.

    None where there is no table (yet).

    Raises:
        SourceUnreachable: the table's log can't be read; the id that was known before must not be written over.
    """
    table = delta_table(context, dataset)
    if table is not None:
        return readable_table_id(table)
    return starts.destination_id(context.pipeline.manifest.dataset(dataset.name), None)
