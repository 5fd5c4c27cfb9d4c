"""When Airflow begins updates: as ``pipeline.yml`` says, else as a source does, else as the trigger wants it."""

from __future__ import annotations

from headwater.definitions.pipeline_spec import PipelineSpec
from headwater.definitions.trigger import AvailableNow
from headwater.errors import UnsupportedArgument
from headwater.graph.manifest import Manifest
from headwater.graph.registry import Registry

# Airflow's word for a run that begins when the last one has ended.
CONTINUOUS = "@continuous"


def declared_schedule(registry: Registry, spec: PipelineSpec) -> str | None:
    """The schedule that a source declares, if ``pipeline.yml`` does not say another.

    Raises:
        UnsupportedArgument: a run by schedule has nobody to fill in a required parameter.
    """
    schedule = registry.schedule
    if schedule is None or "schedule" in spec.airflow.model_fields_set:
        return None
    unfilled = next((n for n, p in spec.parameters.items() if p.required and p.default is None), None)
    if unfilled is not None:
        raise UnsupportedArgument(
            f"SCHEDULE: the parameter {unfilled!r} is required without a default, and a scheduled run has nobody to fill it in.",
            where=schedule.location,
            remedy="Give the parameter a default, or write `airflow: {schedule: null}` into pipeline.yml.",
        )
    return schedule.cron


def schedule_of(spec: PipelineSpec, manifest: Manifest | None) -> str | None:
    """The schedule of the pipeline's DAG. A long stream runs again and again, unless a schedule is given (also as null: by hand only).

    Args:
        manifest: the committed one, if there is one.
    """
    if "schedule" in spec.airflow.model_fields_set:
        return spec.airflow.schedule
    if manifest is not None and manifest.schedule is not None:
        return manifest.schedule
    return None if isinstance(spec.trigger, AvailableNow) else CONTINUOUS
