"""When what a sensor waits for is there: at a limit it is, and where nothing is known it is not."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.metrics.checkpoint_health import CheckpointHealth, Health
from headwater.metrics.event_freshness import EventFreshness
from headwater.metrics.freshness import Freshness
from headwater.metrics.watermark import WatermarkLag
from headwater_airflow.conditions import checkpoint_health, freshness, table_version, watermark
from headwater_airflow.conditions.checkpoint_health import CheckpointHealthCondition
from headwater_airflow.conditions.condition import Sighting
from headwater_airflow.conditions.freshness import FreshnessCondition
from headwater_airflow.conditions.table_version import TableVersionCondition
from headwater_airflow.conditions.watermark import WatermarkCondition


@pytest.fixture(params=[None, "t"])
def dataset(request: pytest.FixtureRequest) -> Any:
    """All tables, or one."""
    return request.param


def observed(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, found: Any, *, ran: bool = True
) -> None:
    """Let a condition see a pipeline."""
    manifest = SimpleNamespace(table_path=lambda _, table: Path(table)) if ran else None
    monkeypatch.setattr(module, "observed_pipeline", lambda *_: (SimpleNamespace(warehouse=Path()), manifest))
    monkeypatch.setattr(module, name, lambda *_: found)


@pytest.mark.parametrize(
    ("ages", "met"),
    [({"t": 10.0}, True), ({"t": 10.1}, False), ({"t": None}, False), ({"t": 1.0, "u": 11.0}, None), ({"t": 11.0, "u": 1.0}, False)],
)  # fmt: skip
def test_fresh_tables(monkeypatch, dataset: str | None, ages: dict[str, float | None], met: bool | None):
    """As old as allowed is fresh, no data is not; only the tables that are asked about count."""
    observed(monkeypatch, freshness, "pipeline_freshness", [Freshness(*one) for one in ages.items()])
    sighting = FreshnessCondition("p", dataset, 10.0).look()
    assert sighting.met is (dataset is not None if met is None else met)
    assert len(sighting.payload["datasets"]) == (len(ages) if dataset is None else 1)


@pytest.mark.parametrize(("seconds", "met"), [(10.0, True), (10.1, False), (None, False)])
def test_fresh_events(monkeypatch, seconds: float | None, met: bool):
    """The newest event counts, not the commit; none is not fresh."""
    observed(monkeypatch, freshness, "table_event_freshness", EventFreshness("t", "at", 1.0, seconds))
    assert FreshnessCondition("p", "t", 10.0, "at").look().met is met


def sick(health: dict[str, Health]) -> list[CheckpointHealth]:
    return [CheckpointHealth(name, name, one) for name, one in health.items()]


@pytest.mark.parametrize(
    ("health", "met"),
    [({"t": Health.NEW}, True), ({"t": Health.SICK}, False), ({"t": Health.HEALTHY, "u": Health.SICK}, None)],
)
def test_checkpoints_that_are_well(
    monkeypatch, dataset: str | None, health: dict[str, Health], met: bool | None
):
    """One that is sick is waited for, unless it is of another table than asked about."""
    observed(monkeypatch, checkpoint_health, "pipeline_health", sick(health))
    assert CheckpointHealthCondition("p", dataset).look().met is (dataset is not None if met is None else met)


def reached(
    monkeypatch: pytest.MonkeyPatch, dataset: str | None, *lags: WatermarkLag, **wanted: Any
) -> Sighting:
    """What is found of watermarks."""
    observed(monkeypatch, watermark, "pipeline_watermarks", list(lags))
    return WatermarkCondition("p", dataset, wanted.get("seconds"), wanted.get("point")).look()


def test_watermarks_near_now(monkeypatch, dataset: str | None):
    """Each stream with a watermark has to be near enough; those without one do not count, but one must have one."""
    at, more, none = (
        WatermarkLag("a", "t", 1.0, 10.0),
        WatermarkLag("b", "t", 1.0, 10.1),
        WatermarkLag("c", "t"),
    )
    other = WatermarkLag("d", "u", 1.0, 99.0)
    assert reached(monkeypatch, dataset, at, none, seconds=10.0).met
    assert not reached(monkeypatch, dataset, at, more, seconds=10.0).met
    assert not reached(monkeypatch, dataset, none, seconds=10.0).met
    assert reached(monkeypatch, dataset, at, other, seconds=10.0).met is (dataset is not None)


@pytest.mark.parametrize(
    "point", ["1970-01-01T00:01:40", "1970-01-01T00:01:40+00:00", "1970-01-01T02:01:40+02:00"]
)
def test_watermarks_at_a_point(monkeypatch, dataset: str | None, point: str):
    """A point is reached at that moment; one without a time zone is meant in UTC. Both limits have to be met."""
    lag = WatermarkLag("a", "t", 100.0, 50.0)
    assert reached(monkeypatch, dataset, lag, point=point).met
    assert not reached(monkeypatch, dataset, WatermarkLag("a", "t", 99.9, 0.0), point=point).met
    assert not reached(monkeypatch, dataset, lag, point=point, seconds=49.0).met


@pytest.mark.parametrize(("version", "met"), [(6, True), (7, True), (8, False)])
def test_a_version_that_a_table_has(monkeypatch, version: int, met: bool):
    """At it, or after it; no table is no version."""
    monkeypatch.setattr(table_version, "warehouse_table", Path)
    monkeypatch.setattr(table_version, "table_head", lambda _: SimpleNamespace(table_id="i", version=7))
    sighting = TableVersionCondition("s.t", version).look()
    assert (sighting.met, sighting.payload) == (met, {"table": "s.t", "table_id": "i", "version": 7})
    monkeypatch.setattr(table_version, "table_head", lambda _: None)
    assert not TableVersionCondition("s.t", 0).look().met


@pytest.mark.parametrize(
    ("module", "name", "condition"),
    [
        (freshness, "pipeline_freshness", FreshnessCondition("p", None, 1.0)),
        (checkpoint_health, "pipeline_health", CheckpointHealthCondition("p", None)),
        (watermark, "pipeline_watermarks", WatermarkCondition("p", None, 1.0, None)),
    ],
)
def test_a_pipeline_that_has_not_run(monkeypatch, module: Any, name: str, condition: Any):
    """It is waited for."""
    observed(monkeypatch, module, name, [], ran=False)
    assert condition.look() == Sighting(met=False, summary="p has not run yet.")
