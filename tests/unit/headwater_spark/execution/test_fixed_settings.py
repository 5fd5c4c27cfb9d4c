"""The settings that a flow's state is kept with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.headwater_spark.recorded_writes import Conf
from tests.unit.headwater_spark.update_parts import context_of, dataset, flow, run_of, sink

from headwater.checkpoints.layout import FlowState
from headwater.definitions.sink import SinkKind
from headwater_spark.execution import fixed_settings
from headwater_spark.plans.stateful_queries import PARTITIONS, PROVIDER

ORDERS = dataset()
ID = "11111111-2222-3333-4444-555555555555"


def kept(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    recorded: dict[str, str],
    stateful: bool = True,
    **given: Any,
) -> tuple[dict[str, str], Any]:
    """The settings that a flow's state is kept with, and the context."""
    context: Any = context_of(tmp_path, ORDERS)
    context.pipeline.evaluation.frames = {"orders": None}
    context.spark.conf = Conf()
    context.spark.conf.set(PARTITIONS, "4")
    context.pipeline.evaluation.setting = {PARTITIONS: given.get("source", "4")}.get
    context.pipeline.project.spec.spark = given.get("spark", {})
    context.pipeline.project.configuration = given.get("configuration", {})
    monkeypatch.setattr(fixed_settings, "is_stateful", lambda _: stateful)
    one = flow(spark_conf=given.get("own", {}))
    state = FlowState(state_settings=recorded)
    return fixed_settings.fixed_settings(run_of(context, given.get("table"), one), state), context


@pytest.mark.parametrize(
    ("given", "partitions"),
    [
        ({}, "4"),
        ({"source": "8"}, "8"),
        ({"spark": {PARTITIONS: "5"}}, "5"),
        ({"spark": {PARTITIONS: "5"}, "configuration": {PARTITIONS: "6"}}, "6"),
        ({"configuration": {PARTITIONS: "6"}, "source": "7"}, "7"),
        ({"source": "7", "own": {PARTITIONS: "9"}}, "9"),
    ],
)
def test_settings_of_a_state_that_is_new(monkeypatch, tmp_path: Path, given, partitions):
    """The nearest one counts: the flow's, the source's, the configuration's, the pipeline's, the machine's."""
    fixed, context = kept(monkeypatch, tmp_path, {}, **given)
    assert fixed[PARTITIONS] == partitions
    assert fixed[PROVIDER].endswith("RocksDBStateStoreProvider")
    assert context.events.emitted == []


def test_settings_of_a_state_that_is_there(monkeypatch, tmp_path: Path):
    """They are kept; where others are configured, a record says so, with the command that creates the state again. What the machine decides is not reported."""
    recorded = {PARTITIONS: "3", PROVIDER: "x"}
    fixed, context = kept(monkeypatch, tmp_path, recorded)
    assert (fixed, context.events.emitted) == (recorded, [])
    fixed, context = kept(monkeypatch, tmp_path, recorded, own={PARTITIONS: "9"})
    assert fixed == recorded
    ((_, message, _),) = context.events.emitted
    assert "--full-refresh orders" in message
    outside = sink(SinkKind.KAFKA, "kafka", "orders")
    _, context = kept(monkeypatch, tmp_path, recorded, own={PARTITIONS: "9"}, table=outside)
    assert "--reset-checkpoint orders" in context.events.emitted[0][1]
    assert kept(monkeypatch, tmp_path, recorded, stateful=False)[0] == {}
