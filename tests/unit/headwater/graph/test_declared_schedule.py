"""Which schedule the DAG of a pipeline has: that of pipeline.yml, else of a source, else that of its trigger."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.definitions.airflow_spec import CONTINUOUS
from headwater.definitions.pipeline_spec import PipelineSpec
from headwater.definitions.source_location import SourceLocation
from headwater.errors import UnsupportedArgument
from headwater.graph.declared_schedule import declared_schedule, overruled, schedule_of
from headwater.graph.manifest import Manifest
from headwater.graph.registry import Registry

LONG = {"processing_time": "10 seconds", "run_for": "5 minutes"}


def spec(**given: Any) -> PipelineSpec:
    """A pipeline.yml."""
    return PipelineSpec.model_validate({"name": "a", **given})


def registry(*crons: str) -> Registry:
    """A registry with a dataset of each schedule."""
    made = Registry()
    for number, cron in enumerate(crons):
        made.add_schedule(f"v{number}", cron, SourceLocation("a.sql", number + 1))
    return made


def manifest(schedule: str | None) -> Manifest:
    """A manifest as it is committed."""
    return Manifest(
        headwater_version="0", pipeline_id="a", pipeline_name="a", schema_name="s", source_hash="", schedule=schedule,
        datasets=(), flows=(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "declared", "schedule"),
    [
        ({}, None, None),
        ({}, "0 * * * *", "0 * * * *"),
        ({"airflow": {"schedule": "@daily"}}, "0 * * * *", "@daily"),
        ({"airflow": {"schedule": None}}, "0 * * * *", None),
        ({"trigger": LONG}, None, CONTINUOUS),
        ({"trigger": LONG}, "0 * * * *", "0 * * * *"),
        ({"trigger": LONG, "airflow": {"schedule": None}}, None, None),
        ({"trigger": "continuous"}, "0 * * * *", CONTINUOUS),
        ({"trigger": "continuous", "airflow": {"schedule": "@daily"}}, "0 * * * *", "@daily"),
    ],
)
def test_who_has_the_last_word(given: dict[str, Any], declared: str | None, schedule: str | None):
    """pipeline.yml, also where it says that there is none; through the committed manifest, which only has the field if it must."""
    found = declared_schedule(registry(*([declared] if declared else [])), spec(**given))
    text = manifest(found).to_json()
    assert ("schedule" in text) == (found is not None)
    assert schedule_of(spec(**given), Manifest.model_validate_json(text)) == schedule
    if declared is None:
        assert schedule_of(spec(**given), None) == schedule


def test_one_update_is_for_all():
    """The same times may be said by several statements; different ones are refused with both places, unless pipeline.yml decides."""
    assert declared_schedule(registry("0 * * * *", "0 * * * *"), spec()) == "0 * * * *"
    different = registry("0 * * * *", "0 * * * *", "0 0 * * *")
    with pytest.raises(UnsupportedArgument, match=r"'v2' wants updates at '0 0 .*'v0' at '0 \* ") as caught:
        declared_schedule(different, spec())
    assert caught.value.where == "a.sql:3, and before at a.sql:1"
    assert 'schedule: "0 * * * *"' in caught.value.remedy
    for given in (
        {"airflow": {"schedule": "@daily"}},
        {"airflow": {"schedule": None}},
        {"trigger": "continuous"},
    ):
        assert declared_schedule(different, spec(**given)) is None
        assert overruled(spec(**given))
    assert overruled(spec()) is None


def test_nobody_fills_in_a_parameter():
    """A parameter that is required without a default can't be met by a run on schedule."""
    needs = {"parameters": {"day": {"type": "string", "required": True}}}
    with pytest.raises(UnsupportedArgument, match="'day' is required") as caught:
        declared_schedule(registry("0 * * * *"), spec(**needs))
    assert caught.value.where == "a.sql:1"
    assert declared_schedule(registry("0 * * * *"), spec(**needs, airflow={"schedule": None})) is None
