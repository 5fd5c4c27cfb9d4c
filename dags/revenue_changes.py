"""Runs when the rows of a table have changed, and says in its log what has: an example of reading a change feed."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

from airflow.sdk import DAG

from headwater_airflow.changes import DeltaTableAsset, changes
from headwater_airflow.notifications.log import LogNotifier
from headwater_airflow.notifications.run_callback import RunCallback

TABLE = "shop.revenue_by_day_and_country"

with DAG(
    "revenue_changes",
    description="Runs when the revenue by day and country has changed.",
    schedule=[DeltaTableAsset(TABLE)],
    start_date=datetime(2025, 1, 1, tzinfo=UTC),
    catchup=False,
    tags=["headwater", "shop"],
    # How late the table may be is a limit of the pipeline that fills it: orders_checks.
    on_failure_callback=RunCallback("revenue_changes", "failure", (LogNotifier(),)),
) as dag:

    @changes(TABLE)
    def report(changes: Any) -> dict[str, Any]:
        """Say which versions are new, and how many rows each kind of change has."""
        logging.getLogger(__name__).info("%s: %s", changes.table, changes.counts)
        summary: dict[str, Any] = changes.as_dict()
        return summary

    report()
