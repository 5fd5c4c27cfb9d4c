"""Where each check draws its line: what is at a limit is within it, and what is not known is over it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headwater.definitions.airflow_spec import EventFreshnessSpec
from headwater.definitions.finding import Severity
from headwater.metrics.checkpoint_health import CheckpointHealth, Health
from headwater.metrics.event_freshness import EventFreshness
from headwater.metrics.freshness import Freshness
from headwater.metrics.pace import FlowPace
from headwater.metrics.retention import RetentionUse
from headwater.metrics.rule_rates import RuleRate
from headwater_airflow.operators import limit_checks as module
from headwater_airflow.operators.pipeline_check import PipelineCheckOperator


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What is measured of a pipeline that has run."""
    found = SimpleNamespace(
        manifest="manifest", freshness=[], events=[], rates=[], health=[], paces=[], intervals={}, uses=[], advice=[], written=True
    )  # fmt: skip
    project = SimpleNamespace(state_folder="state")
    monkeypatch.setattr(module, "observed_pipeline", lambda *_: (project, found.manifest))
    monkeypatch.setattr(module, "pipeline_project", lambda _: project)
    monkeypatch.setattr(module, "pipeline_freshness", lambda *_: found.freshness)
    monkeypatch.setattr(
        module,
        "pipeline_event_freshness",
        lambda *given: [one for one in found.events if one.dataset in given[2]],
    )
    monkeypatch.setattr(module, "_has_written", lambda _: found.written)
    monkeypatch.setattr(module, "rule_rates", lambda _: found.rates)
    monkeypatch.setattr(module, "pipeline_health", lambda *_: found.health)
    monkeypatch.setattr(module, "flow_paces", lambda _: found.paces)
    monkeypatch.setattr(module, "flow_intervals", lambda *_: found.intervals)
    monkeypatch.setattr(module, "retention_use", lambda *_: found.uses)
    monkeypatch.setattr(module, "read_advice", lambda _: found.advice)
    return found


def over(check: type[PipelineCheckOperator], **limits: Any) -> list[str]:
    """What is over."""
    return [one.key for one in check(task_id="check", pipeline="p", **limits).measure().breaches]


def test_old_tables(seen: SimpleNamespace):
    """A table whose newest data is older than the limit, and one without data; without a limit none is."""
    seen.freshness = [Freshness("at", 120.0, 1), Freshness("older", 120.1, 1), Freshness("empty")]
    assert over(module.FreshnessCheckOperator, max_minutes=2) == ["older", "empty"]
    assert over(module.FreshnessCheckOperator) == []


def test_tables_that_are_gone(seen: SimpleNamespace):
    """No table at all is nothing to check before the first update has written, and an alarm after it."""
    seen.freshness = [Freshness("one"), Freshness("other")]
    assert over(module.FreshnessCheckOperator, max_minutes=2) == ["one", "other"]
    seen.written = False
    assert over(module.FreshnessCheckOperator, max_minutes=2) == []
    seen.freshness = [Freshness("one"), Freshness("other", 1.0, 3)]
    assert over(module.FreshnessCheckOperator, max_minutes=2) == ["one"]


def test_old_events(seen: SimpleNamespace):
    """Each table has a limit of its own; a time that is not known, or no event, is over it."""
    seen.freshness = [Freshness("at", 0.0, 1)]
    seen.events = [
        EventFreshness("at", "t", 1.0, 60.0), EventFreshness("older", "t", 1.0, 60.1), EventFreshness("none", "t"),
        EventFreshness("unknown", "t", unknown="no statistics"),
    ]  # fmt: skip
    limits = {name: EventFreshnessSpec(column="t", minutes=1) for name in ("at", "older", "none", "unknown")}
    assert over(module.FreshnessCheckOperator, events=limits) == ["older/t", "none/t", "unknown/t"]


def test_rules_that_fail(seen: SimpleNamespace):
    """More than the limit, in percent of all rows."""
    seen.rates = [RuleRate("t", "at", "u", 90, 10), RuleRate("t", "more", "u", 89, 11)]
    assert over(module.RulesCheckOperator, max_percent=10) == ["t/more"]


def test_sick_checkpoints(seen: SimpleNamespace):
    """A checkpoint that is new or well is none."""
    seen.health = [CheckpointHealth(str(health), "t", health) for health in Health]
    assert over(module.CheckpointCheckOperator) == ["t/sick"]


def test_slow_batches(seen: SimpleNamespace):
    """Longer than the limit, or else than the flow's own interval; a flow without one has no limit."""
    seen.paces = [
        FlowPace(name, "t", 5, seconds) for name, seconds in (("at", 10.0), ("more", 10.1), ("free", 99.0))
    ]
    seen.intervals = {"at": 10.0, "more": 10.0}
    assert over(module.PaceCheckOperator) == ["t/more"]
    assert over(module.PaceCheckOperator, max_seconds=20) == ["t/free"]
    assert over(module.PaceCheckOperator, max_seconds=10.0) == ["t/more", "t/free"]


def test_commits_that_are_about_to_go(seen: SimpleNamespace):
    """A stream that has used up more of the time than allowed, and one of which it is not known."""
    seen.uses = [
        RetentionUse("at", "t", "s", 50.0, 100.0), RetentionUse("more", "t", "s", 51.0, 100.0),
        RetentionUse("unknown", "t", "s", None, 100.0, "gone"),
    ]  # fmt: skip
    assert over(module.RetentionCheckOperator, max_percent=50) == ["t/more/s", "t/unknown/s"]


def test_advice_that_warns(seen: SimpleNamespace):
    """Hints wake nobody."""
    seen.advice = [
        SimpleNamespace(dataset="t", flow="f", code=str(severity), line="-", severity=severity, as_dict=dict)
        for severity in Severity
    ]
    assert over(module.AdviceCheckOperator) == [f"t/f/{Severity.WARNING}"]


@pytest.mark.parametrize(
    ("check", "limits"),
    [
        (module.FreshnessCheckOperator, {"max_minutes": 1}),
        (module.CheckpointCheckOperator, {}),
        (module.PaceCheckOperator, {}),
        (module.RetentionCheckOperator, {"max_percent": 1}),
    ],
)
def test_before_the_first_update(
    seen: SimpleNamespace, check: type[PipelineCheckOperator], limits: dict[str, Any]
):
    """There is nothing to check yet."""
    seen.manifest = None
    measured = check(task_id="check", pipeline="p", **limits).measure()
    assert (measured.breaches, measured.text) == ((), "p has not run yet: there is nothing to check.")
