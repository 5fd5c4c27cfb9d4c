"""Tables whose retention is shorter than the time between updates: HW301 and HW302."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta

from headwater.definitions.finding import Finding
from headwater.definitions.intervals import FILE_RETENTION, LOG_RETENTION, duration, longest_gap
from headwater.definitions.source import SourceKind
from headwater.graph.declared_schedule import schedule_of
from headwater.graph.manifest import SourceEntry
from headwater.storage.conditions import STORE_ERRORS
from headwater.storage.delta_tables import delta_table
from headwater.storage.place import located
from headwater_spark.linting.flow_case import FlowCase

_RULES = (
    ("HW301", *LOG_RETENTION, "commits that were not read are forgotten"),
    ("HW302", *FILE_RETENTION, "a vacuum removes files that were not read"),
)


def short_retention(case: FlowCase) -> Iterator[Finding]:
    """HW301 and HW302."""
    schedule = schedule_of(case.pipeline.project.spec, case.pipeline.manifest)
    gap = longest_gap(schedule) if schedule else None
    if gap is None:
        return
    entry = case.pipeline.manifest.flow(case.flow.name)
    for source in entry.sources:
        properties = _properties(case, source) if source.streaming else None
        if properties is None:
            continue
        name = source.name or (source.location or "").rpartition("/")[2]
        for code, key, default, consequence in _RULES:
            retention = duration(properties.get(key, default))
            if retention is not None and retention < gap:
                yield case.find(
                    code,
                    f"It reads {name!r} as a stream, whose {key} is {properties.get(key, default + ', the default')}, and the "
                    f"schedule ({schedule}) leaves up to {_in_words(gap)} between updates: {consequence}.",
                    f"Set the table's property {key} to more than that, or run the pipeline more often.",
                    ("read_stream", "table", "load"),
                )


def _properties(case: FlowCase, source: SourceEntry) -> Mapping[str, str] | None:
    if source.kind is SourceKind.DATASET:
        return case.pipeline.dataset(source.name).table_properties
    if source.kind is not SourceKind.DELTA:
        return None
    from deltalake.exceptions import TableNotFoundError

    path = located(case.pipeline.project.warehouse, source.location or source.path or "")
    try:
        configuration: Mapping[str, str] = delta_table(path).metadata().configuration
    except (TableNotFoundError, OSError, *STORE_ERRORS):
        return None
    return configuration


def _in_words(gap: timedelta) -> str:
    hours = gap.total_seconds() / 3600
    return f"{hours / 24:g} days" if hours >= 48 else f"{hours:g} hours"
