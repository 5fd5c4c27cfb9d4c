"""The event log's records about backfills: which of them a run has done."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from headwater.event_log.reader import events
from headwater.graph.pipeline_project import PipelineProject
from headwater_airflow.following.request import request_id
from headwater_airflow.forms.backfill_form import BackfillRequest


def cleared_backfill(
    project: PipelineProject, backfill: BackfillRequest, dag_id: str, run_id: str, first: int
) -> tuple[BackfillRequest, str]:
    """The backfill that a run is about, and the request that it is made under.

    Whoever clears a run that was done wants it done again, as any task of Airflow is. Of one that failed, a clear goes on where it
    stood: what is done would else be refused, or done twice.

    Args:
        first: which attempt of the task is the first since it was cleared last; 1 where it never was.
    """
    request = request_id(dag_id, run_id)
    counts_only = {"dry_run", "then_stream"} & set(backfill.switches)
    if first == 1 or counts_only or not _is_done(project, request, backfill.tables):
        return backfill, request
    again = replace(backfill, switches=tuple(dict.fromkeys((*backfill.switches, "again"))))
    # A request of its own: its retries find what it has done, and the next clear does it once more.
    return again, request_id(dag_id, run_id, f"from attempt {first}")


def _is_done(project: PipelineProject, request: str, tables: Collection[str]) -> bool:
    records = events(project.state_folder, request_id=request, event_type="operation_progress")
    done = {
        str(record["origin"]["dataset_name"]).lower()
        for record in records
        if (body := record["details"].get("operation_progress", {})).get("type") == "BACKFILL"
        and body.get("status") == "COMPLETED"
    }
    return done.issuperset(table.lower() for table in tables)
