"""Where a dataset's rows land, and how to know it again: a table of the pipeline, or what a sink stands for."""

from __future__ import annotations

from pathlib import Path

from headwater.definitions.dataset import Dataset
from headwater.definitions.sink import SinkKind
from headwater_spark.delta_writes.tables import table_id
from headwater_spark.execution.update_context import UpdateContext


def delta_table(context: UpdateContext, dataset: Dataset) -> Path | None:
    """The folder of the Delta table that the rows go to, None where they go elsewhere."""
    if dataset.sink is not None and dataset.sink.kind is not SinkKind.DELTA:
        return None
    return context.table_path(dataset)


def destination_id(context: UpdateContext, dataset: Dataset) -> str | None:
    """What stays the same as long as rows go to the same place: a Delta table's id, a topic, a function's name.

    None where there is no table (yet).
    """
    table = delta_table(context, dataset)
    if table is not None:
        return table_id(table)
    sink = dataset.sink
    assert sink is not None
    if sink.kind is SinkKind.KAFKA:
        return f"kafka:{sink.option('topic') or '*'}"
    return f"{sink.format}:{dataset.name}"
