"""Flows that are evaluated side by side in one session."""

from __future__ import annotations

from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

from tests.unit.headwater_spark.recorded_writes import Conf
from tests.unit.headwater_spark.update_parts import flow

from headwater.graph.registry import Registry
from headwater_spark.plans.stateful_queries import PARTITIONS
from headwater_spark.resolution.evaluation import Evaluation


def test_the_settings_of_a_flow_are_no_other_flows(tmp_path: Path):
    """While they are in the session, another flow that asks for a setting waits, and gets the session's own."""
    session: Any = SimpleNamespace(conf=Conf())
    session.conf.set(PARTITIONS, "2")
    evaluation = Evaluation(Registry(), session, tmp_path, {}, tmp_path / "stubs", tmp_path / "state")
    seen: list[str | None] = []
    other = Thread(target=lambda: seen.append(evaluation.setting(PARTITIONS)))
    with evaluation.settings(flow(spark_conf={PARTITIONS: "3"})):
        assert evaluation.setting(PARTITIONS) == "3"
        other.start()
        other.join(0.2)
        assert seen == []
    other.join(30)
    assert seen == ["2"]
