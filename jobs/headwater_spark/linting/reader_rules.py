"""Tables that the readers of ``pipeline.yml`` could not follow: HW701."""

from __future__ import annotations

from collections.abc import Iterator

from headwater.definitions.finding import Finding, finding
from headwater.definitions.other_engines import shut_out
from headwater_spark.resolution.graph_resolution import ResolvedPipeline


def unreadable_tables(pipeline: ResolvedPipeline) -> Iterator[Finding]:
    """HW701: private tables are for this pipeline alone, and are passed over."""
    spec = pipeline.project.spec
    session = {**spec.spark, **spec.configuration}
    for entry in pipeline.manifest.tables if spec.readers else ():
        if entry.private:
            continue
        types = [column.type for column in entry.columns]
        for excluded in shut_out(spec.readers, entry.table_properties, types, session):
            names = " and ".join(excluded.readers)
            yield finding(
                "HW701",
                f"{names} can't read {entry.name!r}: the table has {excluded.feature.title}.",
                f"{excluded.feature.remedy}, or take {names} out of `readers` in pipeline.yml.",
                pipeline.dataset(entry.name).location,
                entry.name,
            )
