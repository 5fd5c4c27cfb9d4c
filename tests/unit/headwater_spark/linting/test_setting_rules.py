"""What is accepted and has no effect is said."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headwater.definitions.pipeline_spec import PipelineSpec
from headwater.definitions.source_location import SourceLocation
from headwater.graph.registry import IdleClause, Registry
from headwater_spark.linting.setting_rules import idle_clauses, real_time_in_updates_that_end


def pipeline_of(registry: Registry, **given: Any) -> Any:
    """A resolved pipeline as far as the rules look at it."""
    spec = PipelineSpec.model_validate({"name": "a", **given})
    return SimpleNamespace(registry=registry, project=SimpleNamespace(spec=spec))


def test_idle_clauses_of_statements():
    """A clause that SQL gives and nothing honours is HW601, at its statement."""
    registry = Registry()
    where = SourceLocation("a.sql", 3)
    registry.idle_clauses.append(IdleClause("t", "PRIMARY KEY", "nothing checks it", where))
    (finding,) = idle_clauses(pipeline_of(registry))
    assert (finding.code, finding.where, finding.dataset) == ("HW601", where, "t")
    assert "PRIMARY KEY has no effect here: nothing checks it" in finding.message
    assert finding.silence.startswith("`-- headwater")


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, None),
        ({"airflow": {"schedule": "@daily"}}, "pipeline.yml has"),
        ({"trigger": "continuous"}, "updates do not end"),
    ],
)
def test_schedules_that_are_overruled(given: dict[str, Any], reason: str | None):
    """A SCHEDULE that something else overrules is HW601 at its statement, with the reason."""
    registry, where = Registry(), SourceLocation("a.sql", 2)
    registry.add_schedule("v", "0 * * * *", where)
    findings = list(idle_clauses(pipeline_of(registry, **given)))
    assert [(one.code, one.where, one.dataset) for one in findings] == (
        [("HW601", where, "v")] if reason else []
    )
    assert all(str(reason) in one.message for one in findings)


@pytest.mark.parametrize("trigger", ["available_now", "continuous"])
def test_real_time_needs_a_continuous_pipeline(trigger: str):
    """A flow that asks for it in a pipeline whose updates end is HW604, an error; in a continuous one it is as it should be."""
    found: list[str] = []
    case: Any = SimpleNamespace(
        flow=SimpleNamespace(spark_conf={"pipelines.trigger": "RealTime"}),
        pipeline=pipeline_of(Registry(), trigger=trigger),
        find=lambda code, *_: found.append(code) or code,  # type: ignore[func-returns-value]
    )
    assert list(real_time_in_updates_that_end(case)) == ([] if trigger == "continuous" else ["HW604"])
    case.flow.spark_conf = {}
    assert list(real_time_in_updates_that_end(case)) == []
