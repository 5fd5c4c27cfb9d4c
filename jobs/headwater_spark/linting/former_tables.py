"""Reads of tables that the pipeline has left behind: HW203."""

from __future__ import annotations

from collections.abc import Iterator

from headwater.definitions.finding import Finding
from headwater.delta_log.table_history import last_pipeline, table_exists
from headwater.metrics.fingerprint import source_table
from headwater.quarantine.table import is_quarantine
from headwater.storage.place import located
from headwater_spark.linting.flow_case import FlowCase


def tables_no_longer_filled(case: FlowCase) -> Iterator[Finding]:
    """HW203."""
    project, manifest = case.pipeline.project, case.pipeline.manifest
    places = [place for entry in manifest.outputs for place in (entry.location, entry.quarantine) if place]
    filled = {located(project.warehouse, place) for place in places}
    for source in manifest.flow(case.flow.name).sources:
        table = source_table(source, project.warehouse)
        if table is None or table in filled or not table_exists(table):
            continue
        if last_pipeline(table) == project.pipeline_id and not is_quarantine(table):
            yield case.find(
                "HW203",
                f"It reads the table {table.name!r}, which this pipeline filled and no longer declares: no row will come to it.",
                "Read the dataset that took its place. If the table was renamed in the sources, `headwater rename` takes its rows and "
                "positions along; a table that is no longer wanted goes with `headwater drop`.",
                ("table", "load", "read", "read_stream"),
            )
