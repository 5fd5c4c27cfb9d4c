"""When Airflow begins updates: as ``pipeline.yml`` says, else as a source does, else as the trigger wants it."""

from __future__ import annotations

from headwater.definitions.airflow_spec import CONTINUOUS
from headwater.definitions.pipeline_spec import PipelineSpec
from headwater.definitions.trigger import AvailableNow, Continuous
from headwater.errors import UnsupportedArgument
from headwater.graph.manifest import Manifest
from headwater.graph.registry import Registry


def overruled(spec: PipelineSpec) -> str | None:
    """Why the schedules of sources have no effect, in words; None where they have."""
    if "schedule" in spec.airflow.model_fields_set:
        return "pipeline.yml has `airflow: {schedule: ...}`, which wins"
    if isinstance(spec.trigger, Continuous):
        return "the pipeline's trigger is continuous, and its updates do not end"
    return None


def declared_schedule(registry: Registry, spec: PipelineSpec) -> str | None:
    """The schedule that sources declare, if nothing overrules it.

    Raises:
        UnsupportedArgument: two statements want different times; or a run by schedule has nobody to fill in a required
            parameter.
    """
    if not registry.schedules or overruled(spec) is not None:
        return None
    first = registry.schedules[0]
    other = next((schedule for schedule in registry.schedules if schedule.cron != first.cron), None)
    if other is not None:
        raise UnsupportedArgument(
            f"SCHEDULE: {other.dataset!r} wants updates at {other.cron!r}, and {first.dataset!r} at {first.cron!r}; an update is for "
            "all tables of the pipeline.",
            where=f"{other.location}, and before at {first.location}",
            remedy=f'Give both the same, put them into pipelines of their own, or write `airflow: {{schedule: "{first.cron}"}}` into '
            "pipeline.yml, which wins over all of them.",
        )
    unfilled = next((n for n, p in spec.parameters.items() if p.required and p.default is None), None)
    if unfilled is not None:
        raise UnsupportedArgument(
            f"SCHEDULE: the parameter {unfilled!r} is required without a default, and a scheduled run has nobody to fill it in.",
            where=first.location,
            remedy="Give the parameter a default, or write `airflow: {schedule: null}` into pipeline.yml.",
        )
    return first.cron


def schedule_of(spec: PipelineSpec, manifest: Manifest | None) -> str | None:
    """The schedule of the pipeline's DAG. A long stream runs again and again, unless a schedule is given (also as null: by hand only).

    Args:
        manifest: the committed one, if there is one.
    """
    if "schedule" in spec.airflow.model_fields_set:
        return spec.airflow.schedule
    if isinstance(spec.trigger, Continuous):
        return CONTINUOUS
    if manifest is not None and manifest.schedule is not None:
        return manifest.schedule
    return None if isinstance(spec.trigger, AvailableNow) else CONTINUOUS
