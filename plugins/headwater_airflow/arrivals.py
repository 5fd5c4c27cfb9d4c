"""Runs that begin when data arrives: ``DAG(schedule=[PipelineDataAsset("orders")])``, or ``schedule: on_data`` in pipeline.yml."""

from __future__ import annotations

from urllib.parse import urlencode

from airflow.sdk import Asset, AssetWatcher

from headwater.arrivals.arrival_rule import ArrivalRule
from headwater.definitions.airflow_spec import OnDataSpec
from headwater.definitions.names import invalid_name, is_folder_name
from headwater_airflow.triggers.data_arrival import DataArrivalTrigger


class PipelineDataAsset(Asset):  # type: ignore[misc]  # Airflow's types are not followed
    """What lies before a pipeline and was not read by it: new files, messages, commits of tables that others write.

    Its events have ``extra["payload"]`` with the sources that have something; the run reads all of them.

    Args:
        pipeline: the name of the pipeline's folder.
        quiet_seconds: wait until nothing more has arrived for so long.
        files, records, versions: so many files of folders, messages of topics, or commits of tables have to be there; one
            of the three is enough.
        wait_seconds: data waits no longer than this, few as it may be.

    Raises:
        UsageError, InvalidName: if one of these has no meaning.

    """

    def __init__(
        self,
        pipeline: str,
        *,
        quiet_seconds: float = 0.0,
        files: int = 1,
        records: int = 1,
        versions: int = 1,
        wait_seconds: float | None = None,
    ) -> None:
        if not is_folder_name(pipeline):
            raise invalid_name(pipeline, "pipeline", remedy="Give the name of its folder.")
        rule = ArrivalRule.checked(quiet_seconds, files, records, versions, wait_seconds)
        trigger = DataArrivalTrigger(
            pipeline, rule.quiet_seconds, rule.files, rule.records, rule.versions, rule.wait_seconds
        )
        # Two rules for one pipeline are two assets.
        query = urlencode(
            {
                name: f"{value:.15g}"
                for name, value in trigger.serialize()[1].items()
                if name != "pipeline" and value != getattr(ArrivalRule(), name)
            }
        )
        super().__init__(
            name=f"{pipeline}@data" + (f"?{query}" if query else ""),
            uri=f"x-headwater-data://{pipeline}" + (f"/?{query}" if query else ""),
            group="headwater",
            watchers=[AssetWatcher(name="data", trigger=trigger)],
        )


def data_asset(pipeline: str, spec: OnDataSpec) -> PipelineDataAsset:
    """The asset that the DAG of a pipeline is scheduled on, as its pipeline.yml says."""
    return PipelineDataAsset(
        pipeline,
        quiet_seconds=spec.quiet.total_seconds(),
        files=spec.files,
        records=spec.records,
        versions=spec.versions,
        wait_seconds=spec.wait.total_seconds() if spec.wait is not None else None,
    )
