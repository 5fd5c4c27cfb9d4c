"""How maintenance is to lay out the files of tables: HW606."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headwater.definitions.finding import Finding, finding
from headwater.delta_log.table_history import readable_log
from headwater.errors import SourceUnreachable
from headwater.graph.manifest import DatasetEntry
from headwater.maintenance.file_layout import declared_order, is_managed
from headwater.suggestions import did_you_mean, nearest
from headwater_spark.resolution.graph_resolution import ResolvedPipeline


def unknown_order_columns(pipeline: ResolvedPipeline) -> Iterator[Finding]:
    """HW606. Columns are those of the definition, and those that the table has from earlier ones."""
    for entry in pipeline.manifest.tables:
        order = declared_order(entry.table_properties) if is_managed(entry.table_properties) else []
        if not order or not entry.columns:  # a table that has no flows yet
            continue
        columns = [column.name for column in entry.columns]
        unknown = _without(order, columns)
        for name in _without(unknown, _columns_in_storage(pipeline, entry, unknown)):
            yield finding(
                "HW606",
                f"pipelines.autoOptimize.zOrderCols of {entry.name!r} names {name!r}, and the table has no such column: maintenance does "
                "not order its files.",
                did_you_mean(nearest(name, columns), f"Its columns are: {', '.join(columns)}."),
                pipeline.dataset(entry.name).location,
                entry.name,
            )


def _without(names: Sequence[str], columns: Sequence[str]) -> list[str]:
    known = {column.lower() for column in columns}
    return [name for name in names if name.lower() not in known]


def _columns_in_storage(
    pipeline: ResolvedPipeline, entry: DatasetEntry, unknown: Sequence[str]
) -> Sequence[str]:
    """The columns that the table has now; all that are asked for where that can't be known."""
    if not unknown:
        return ()
    try:
        table = readable_log(pipeline.manifest.table_path(pipeline.project.warehouse, entry.name))
    except SourceUnreachable:
        return unknown
    return () if table is None else [field.name for field in table.schema().fields]
