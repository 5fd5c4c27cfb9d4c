from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from urllib.parse import unquote, urlparse

from headwater.definitions.dataset_name import DatasetName
from headwater.definitions.expectation import Expectation, quarantines
from headwater.definitions.sink import Sink, SinkKind
from headwater.definitions.source_location import SourceLocation
from headwater.incremental.techniques import RefreshPolicy

QUARANTINE_SUFFIX = "_quarantine"


def quarantine_folder(table: str) -> str:
    """The folder of the quarantine of the table in this folder."""
    return table.rstrip("/") + QUARANTINE_SUFFIX


class DatasetKind(StrEnum):
    """What stands at the end of a flow."""

    STREAMING_TABLE = "streaming_table"
    MATERIALIZED_VIEW = "materialized_view"
    TEMPORARY_VIEW = "temporary_view"
    # ``dp.table``: a streaming table or a materialized view, depending on what the function returns.
    TABLE = "table"
    # Rows leave the pipeline here; nothing in it can read them.
    SINK = "sink"


@dataclass(frozen=True)
class Dataset:
    """A declared table, view or sink. ``schema`` is what the user gave (a DDL string or a StructType), or None.

    ``private``: for this pipeline alone. ``sink``: of kind SINK only.
    ``refresh_policy``: of a materialized view, whether it is recomputed or refreshed by what changed.
    ``spark_conf``: Spark settings of every flow into it, where a flow has no value of its own.
    """

    name: str
    qualified_name: DatasetName
    kind: DatasetKind
    location: SourceLocation | None = None
    comment: str | None = None
    schema: Any = None
    table_properties: Mapping[str, str] = field(default_factory=dict)
    partition_columns: tuple[str, ...] = ()
    cluster_columns: tuple[str, ...] = ()
    path: str | None = None
    private: bool = False
    expectations: tuple[Expectation, ...] = ()
    sink: Sink | None = None
    refresh_policy: RefreshPolicy = RefreshPolicy.AUTO
    spark_conf: Mapping[str, str] = field(default_factory=dict)

    @property
    def stored(self) -> bool:
        """Whether it is a table of the pipeline."""
        return self.kind not in (DatasetKind.TEMPORARY_VIEW, DatasetKind.SINK)

    @property
    def written(self) -> bool:
        """Whether an update writes to it: a table or a sink."""
        return self.kind is not DatasetKind.TEMPORARY_VIEW

    @property
    def named_partitions(self) -> tuple[str, ...]:
        """The partition columns that a write names: none where a schema is given.

        Such a table is made with its schema before its first write, and rows do not bring the columns that Delta generates.
        """
        return self.partition_columns if self.schema is None else ()

    def table_location(self, pipeline_id: str) -> str | None:
        """The folder of its Delta table below the warehouse, or an absolute one; None where it has none.

        Private tables lie in a folder whose name no table can have, so that nobody finds them by name.
        """
        if self.kind is DatasetKind.TEMPORARY_VIEW:
            return None
        if self.sink is not None:
            return self._sink_location(self.sink)
        if self.path:
            return str(self.path)
        return (
            f".private/{pipeline_id}/{self.qualified_name.location}"
            if self.private
            else self.qualified_name.location
        )

    def quarantine_location(self, pipeline_id: str) -> str | None:
        """The folder of the table for rows that its rules kept out, beside its own; None where no rule quarantines."""
        location = (
            self.table_location(pipeline_id) if self.stored and quarantines(self.expectations) else None
        )
        return None if location is None else quarantine_folder(location)

    def _sink_location(self, sink: Sink) -> str | None:
        if sink.kind is not SinkKind.DELTA:
            return None
        table = sink.option("tableName")
        if table is None:
            url = urlparse(str(sink.option("path")))
            return unquote(url.path) if url.scheme == "file" else sink.option("path")
        name = DatasetName.parse(
            table, catalog=self.qualified_name.catalog, schema=self.qualified_name.schema, where=self.location
        )
        return name.location
