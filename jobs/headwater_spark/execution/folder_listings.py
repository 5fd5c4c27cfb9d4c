"""Record how long a flow listed the folders that it reads, and how many files they have."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from headwater.event_log.details import operation_progress
from headwater.event_log.folder_listing import BACKFILL, LISTING, FolderListing
from headwater.event_log.reader import events

if TYPE_CHECKING:
    from headwater_spark.execution.flow_run import FlowRun

# So many of a flow's records are looked at: it may read several folders.
_RECENT = 50


def record_listings(run: FlowRun, epoch: int, spark_ms: int | None) -> None:
    """Record the listings of a run; ``spark_ms``: the time that Spark took for it, None where there was no batch.

    Runs that find nothing may follow each other by the minute: of those a backfill alone is recorded.
    """
    listings = run.context.pipeline.evaluation.cloud.take_listings(run.name)
    if not listings and spark_ms is not None:
        message = f"{run.name} listed its folders for {spark_ms} ms."
        details = operation_progress(LISTING, "COMPLETED", spark_ms)
        run.emit("operation_progress", message, epoch=epoch, details=details, maturity="EVOLVING")
    for number, listing in enumerate(listings):
        whole = listing.longer(spark_ms or 0) if number == 0 else listing
        due = listing.interval is not None and listing.is_backfill(_last(run, listing), datetime.now(UTC))
        if spark_ms is None and not due:
            continue
        details = whole.details(BACKFILL if due else LISTING)
        path = details["operation_progress"]["auto_loader_details"]["source_path"]
        message = f"{run.name} listed {whole.files} files below {path} in {whole.milliseconds} ms."
        run.emit("operation_progress", message, epoch=epoch, details=details, maturity="EVOLVING")


def _last(run: FlowRun, listing: FolderListing) -> datetime | None:
    """When the folder was last listed as a backfill."""
    records = events(
        run.context.pipeline.project.state_folder,
        flow=run.name,
        event_type="operation_progress",
        containing=BACKFILL,
        limit=_RECENT,
    )
    of_path = listing.details(BACKFILL)["operation_progress"]["auto_loader_details"]["source_path"]
    times = [
        record["timestamp"]
        for record in records
        if (record["details"]["operation_progress"].get("auto_loader_details") or {}).get("source_path")
        == of_path
    ]
    return max(times, default=None)
