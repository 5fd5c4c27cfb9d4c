"""Links from a task: to its pipeline's page, and to the Spark UI of the driver while that runs.

The web server asks for them when a task is opened, so they are there before the task has ended. Operators are named, not
imported: every process of Airflow loads the plugin.

Decision 0120.
"""

from __future__ import annotations

import logging
from typing import Any

from airflow.sdk.bases.operatorlink import BaseOperatorLink

from headwater_airflow.page.addresses import base_path

_log = logging.getLogger(__name__)
_MODULES = {
    "RunUpdateOperator": "run_update",
    "DatasetUpdateOperator": "dataset_update",
    "RunMaintenanceOperator": "run_maintenance",
    "RepairCheckpointOperator": "repair_checkpoint",
    "BackfillOperator": "backfill",
}


def _named(name: str) -> Any:
    return type(name, (), {"__module__": f"headwater_airflow.operators.{_MODULES[name]}"})


class PipelinePageLink(BaseOperatorLink):  # type: ignore[misc]  # Airflow's types are not followed
    """The tab of the DAG with its pipeline's page."""

    name = "Pipeline"
    operators = [_named(name) for name in _MODULES]  # noqa: RUF012 - as Airflow reads it

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ARG002 - the form of a link
        """Return the address of the tab."""
        return f"{base_path()}/dags/{ti_key.dag_id}/plugin/pipeline"


class SparkUiLink(BaseOperatorLink):  # type: ignore[misc]
    """The Spark UI of the driver that the task has submitted; none where it has ended, or has no UI."""

    name = "Spark UI"
    operators = [_named("RunUpdateOperator")]  # noqa: RUF012

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ARG002
        """Return the address that the driver has published, if it was this run's."""
        from headwater.event_log.live_driver import live_driver
        from headwater_airflow.following.request import request_id
        from headwater_airflow.page.projects import project_of

        try:
            pipeline = project_of(ti_key.dag_id)
            driver = live_driver(pipeline.project.state_folder) if pipeline and pipeline.project else None
        except Exception:
            # The task's own view must not fail for a link.
            _log.warning("The Spark UI of %s is not known.", ti_key.dag_id, exc_info=True)
            return ""
        if driver is None or driver.request_id != request_id(ti_key.dag_id, ti_key.run_id):
            return ""
        # It comes from a file in storage: no other kind of address may become a link of Airflow's own page.
        return driver.spark_ui if str(driver.spark_ui).startswith(("http://", "https://")) else ""
