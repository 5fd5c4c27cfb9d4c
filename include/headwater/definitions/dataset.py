from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from headwater.definitions.dataset_name import DatasetName
from headwater.definitions.expectation import Expectation
from headwater.definitions.source_location import SourceLocation


class DatasetKind(StrEnum):
    """What stands at the end of a flow."""

    STREAMING_TABLE = "streaming_table"
    MATERIALIZED_VIEW = "materialized_view"
    TEMPORARY_VIEW = "temporary_view"
    # ``dp.table``: a streaming table or a materialized view, told by what the function returns.
    TABLE = "table"


@dataclass(frozen=True)
class Dataset:
    """A declared table or view. ``schema`` is what the user gave (a DDL string or a StructType), or None."""

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

    @property
    def stored(self) -> bool:
        """Whether rows of it lie in a table."""
        return self.kind is not DatasetKind.TEMPORARY_VIEW
