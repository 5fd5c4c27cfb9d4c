"""How old the newest event of a table is, by its own time: what ``SELECT MAX(event_timestamp)`` gives, without a query."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from typing import Any

from headwater.definitions.airflow_spec import EventFreshnessSpec
from headwater.graph.manifest import Manifest
from headwater.graph.pipeline_project import PipelineProject
from headwater.storage.conditions import STORE_ERRORS
from headwater.storage.delta_tables import delta_table
from headwater.storage.place import Place

_STATISTICS = "delta keeps them of the first 32 columns: put it among them, or name it in delta.dataSkippingStatsColumns"


@dataclass(frozen=True)
class EventFreshness:
    """The newest event of a table: its time (seconds since 1970) and its age in seconds.

    Both None where there is no event yet, and where the time is not known: then ``unknown`` says why.
    """

    dataset: str
    column: str
    newest: float | None = None
    seconds: float | None = None
    unknown: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The freshness as JSON values."""
        return asdict(self)


def pipeline_event_freshness(
    project: PipelineProject, manifest: Manifest, limits: Mapping[str, EventFreshnessSpec]
) -> list[EventFreshness]:
    """The newest event of each table that has a limit, in the order of the limits."""
    names = {entry.name.lower(): entry.name for entry in manifest.tables}
    return [
        table_event_freshness(manifest.table_path(project.warehouse, names[name.lower()]), name, spec.column)
        if name.lower() in names
        else EventFreshness(name, spec.column, unknown="the pipeline has no such table")
        for name, spec in limits.items()
    ]


def table_event_freshness(table: Place, dataset: str, column: str) -> EventFreshness:
    """The newest event of a table, from the statistics in its log. ``column``: its time; a field of a struct is ``a.b``."""
    import pyarrow as pa
    from deltalake.exceptions import DeltaError, TableNotFoundError

    try:
        opened = delta_table(table)
        files: list[dict[str, Any]] = pa.table(opened.get_add_actions(flatten=True)).to_pylist()
    except (TableNotFoundError, FileNotFoundError):
        return EventFreshness(dataset, column)
    except (DeltaError, OSError, *STORE_ERRORS) as error:
        return EventFreshness(dataset, column, unknown=f"its log can't be read: {error}")
    names = (f"max.{column}", f"partition.{column}")
    values = [file[name] for file in files for name in names if file.get(name) is not None]
    # Files of before the column was there have none either: those that have some give an age that is never too low.
    if not values and any(_may_have_events(file, column) for file in files):
        return EventFreshness(dataset, column, unknown=f"no file has statistics of {column}; {_STATISTICS}")
    if not values:
        return EventFreshness(dataset, column)
    if not all(isinstance(value, date) for value in values):
        return EventFreshness(
            dataset, column, unknown=f"{column} is no time: its values are {type(values[0]).__name__}"
        )
    newest = max(map(_seconds, values))
    return EventFreshness(dataset, column, newest, max(0.0, time.time() - newest))


def _may_have_events(file: Mapping[str, Any], column: str) -> bool:
    nulls = file.get(f"null_count.{column}")
    return file.get("num_records") != 0 and (nulls is None or nulls != file.get("num_records"))


def _seconds(value: date) -> float:
    moment = (
        value if isinstance(value, datetime) else datetime(value.year, value.month, value.day, tzinfo=UTC)
    )
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
