"""Which flows are measured for a limit of lag."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headwater.errors import InvalidSpec
from headwater_airflow.conditions import lag_reading as module
from headwater_airflow.conditions.lag_reading import LagLimits, read_lag

FLOWS = [SimpleNamespace(target=target) for target in ("orders", "clicks", "clicks")]


@pytest.fixture
def graph(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The graph of a pipeline of three flows, each of which lags behind by as many records as its table's name has letters."""
    tables = [SimpleNamespace(name="orders"), SimpleNamespace(name="clicks")]
    manifest = SimpleNamespace(output_flows=FLOWS, tables=tables)
    monkeypatch.setattr(module, "pipeline_project", lambda _: SimpleNamespace(spec_file="pipeline.yml"))
    monkeypatch.setattr(module, "observed_manifest", lambda _: manifest)
    monkeypatch.setattr(module, "flow_lag", lambda _, flow: flow.target)
    monkeypatch.setattr(module, "over_limit", lambda lags, **limits: [(lag, limits) for lag in lags])
    return manifest


@pytest.mark.parametrize(
    ("dataset", "lags"), [(None, ("orders", "clicks", "clicks")), ("clicks", ("clicks", "clicks"))]
)
def test_the_flows_of_a_table_or_all(graph: Any, dataset: str | None, lags: tuple[str, ...]):
    """Those into the table that is named, else every one; each is compared with the limits that are set."""
    reading = read_lag("shop", dataset, LagLimits(records=5))
    assert reading.lags == lags
    assert reading.breaches == tuple((lag, {"records": 5}) for lag in lags)


def test_a_table_that_there_is_not(graph: Any):
    """It is no table within its limits: the error names those that there are."""
    with pytest.raises(InvalidSpec, match="shop has no table 'order'") as refused:
        read_lag("shop", "order", LagLimits(records=5))
    assert refused.value.remedy == "It has: orders, clicks."


def test_a_pipeline_without_flows(graph: Any):
    """Nothing is behind, and nothing is refused."""
    graph.output_flows = []
    assert read_lag("shop", None, LagLimits()).within_limits


def test_a_pipeline_that_has_not_run(monkeypatch: pytest.MonkeyPatch, graph: Any):
    """Its lag is not known, which is not within limits."""
    monkeypatch.setattr(module, "observed_manifest", lambda _: None)
    reading = read_lag("shop", "order", LagLimits())
    assert (reading.lags, reading.within_limits) == ((), False)
