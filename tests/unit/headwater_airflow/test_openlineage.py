"""What the tasks tell Airflow's OpenLineage provider."""

from __future__ import annotations

import importlib.util
from types import SimpleNamespace

import pytest
from tests.unit.headwater.metrics.conftest import done, pipeline

from headwater.event_log.flow_result import FlowResult
from headwater_airflow import openlineage
from headwater_airflow.operators.dataset_update import DatasetUpdateOperator
from headwater_airflow.operators.run_update import RunUpdateOperator

__all__ = ["done", "pipeline"]

needs_provider = pytest.mark.skipif(
    importlib.util.find_spec("openlineage") is None, reason="the OpenLineage provider is not installed"
)
RESULTS = [
    FlowResult("u1", "silver", "silver", "COMPLETED", output_rows=7),
    FlowResult("u1", "silver", "more", "COMPLETED", output_rows=2),
]


def test_without_the_provider_nothing_is_told(done, monkeypatch):
    """Where the provider is not installed, and before the first update, there is no lineage and no error."""
    monkeypatch.setattr(openlineage.importlib.util, "find_spec", lambda _: None)
    assert openlineage.operator_lineage(done.project, None, RESULTS) is None


def test_both_operators_answer_the_provider(done, monkeypatch):
    """Both tasks have the method that the provider looks for, and ask for their own tables and request."""
    requests = []
    for module in ("dataset_update", "run_update"):
        monkeypatch.setattr(
            f"headwater_airflow.operators.{module}.task_lineage",
            lambda name, datasets, request: requests.append((name, datasets, request)),
        )
    instance = SimpleNamespace(dag_id="shop", run_id="r1")
    one = DatasetUpdateOperator(task_id="gold", pipeline="shop", dataset="gold", asset=None)
    one.get_openlineage_facets_on_complete(instance)
    RunUpdateOperator(task_id="update", pipeline="shop").get_openlineage_facets_on_complete(instance)
    RunUpdateOperator(task_id="t", pipeline="shop", tables=["gold"]).get_openlineage_facets_on_complete(
        instance
    )
    assert [(name, datasets) for name, datasets, _ in requests] == [
        ("shop", ["gold"]),
        ("shop", None),
        ("shop", ["gold"]),
    ]
    assert requests[0][2] == requests[1][2] != requests[2][2]


@needs_provider
def test_what_the_provider_is_told(done):
    """Inputs, outputs, columns and rows written arrive in the provider's own classes, and become its JSON."""
    from openlineage.client.serde import Serde

    lineage = openlineage.operator_lineage(done.project, ["silver"], RESULTS)
    (read,), (written,) = lineage.inputs, lineage.outputs
    assert read.name.endswith("shop/bronze")
    assert Serde.to_dict(written)["outputFacets"]["outputStatistics"]["rowCount"] == 9
    assert written.namespace == "file"


@needs_provider
def test_the_provider_asks_the_operator(done, monkeypatch):
    """The provider's own extractor finds the method, calls it and takes what it gives."""
    from airflow.providers.openlineage.extractors.base import DefaultExtractor

    lineage = openlineage.operator_lineage(done.project, None, RESULTS)
    monkeypatch.setattr("headwater_airflow.operators.run_update.task_lineage", lambda *_: lineage)
    task = RunUpdateOperator(task_id="update", pipeline="shop")
    instance = SimpleNamespace(dag_id="shop", run_id="r1")
    for extracted in (
        DefaultExtractor(task).extract_on_complete(instance),
        DefaultExtractor(task).extract_on_failure(instance),
    ):
        assert [node.name.rsplit("/", 1)[1] for node in extracted.outputs] == ["bronze", "silver", "gold"]
