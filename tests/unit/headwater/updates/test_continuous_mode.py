"""What a continuous update can't be asked for is refused before anything is written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headwater.contract.arguments import parse_run_arguments
from headwater.definitions.trigger import AvailableNow, Continuous
from headwater.errors import UsageError
from headwater.graph.manifest import FlowEntry
from headwater.graph.update_plan import Selection
from headwater.updates.conditions import NotForContinuous
from headwater.updates.continuous_mode import (
    refuse_once_flows,
    refuse_selection,
    spark_settings,
    with_trigger,
)
from headwater.updates.news import news_for


@pytest.fixture
def continuous(done):
    return with_trigger(done.project, True)


def test_a_run_chooses_its_trigger(done, continuous):
    """The command line wins over the spec, in both directions, and changes neither the hash nor the id."""
    assert isinstance(continuous.spec.trigger, Continuous)
    assert with_trigger(continuous, None) is continuous
    assert isinstance(with_trigger(continuous, False).spec.trigger, AvailableNow)
    assert continuous.source_hash() == done.project.source_hash()
    for words, chosen in ((["--continuous"], True), (["--no-continuous"], False), ([], None)):
        arguments = parse_run_arguments(["p", *words])
        assert arguments.continuous is chosen
        assert parse_run_arguments(arguments.to_argv()) == arguments
    with pytest.raises(UsageError, match="contin"):
        parse_run_arguments(["p", "--continous"])


@pytest.mark.parametrize(
    "selection",
    [
        Selection(tables=("bronze",)),
        Selection(flows=("bronze",)),
        Selection(full_refresh=("bronze",)),
        Selection(full_refresh_all=True),
        Selection(reset_flows=("bronze",)),
        Selection(refresh_failed=True),
    ],
)
def test_no_part_of_a_pipeline(done, continuous, selection):
    """A selection or a reset is refused, with the way to do it; an update that ends takes them."""
    with pytest.raises(NotForContinuous, match="whole pipeline") as caught:
        refuse_selection(continuous, selection)
    assert "--no-continuous" in caught.value.remedy
    refuse_selection(done.project, selection)
    refuse_selection(continuous, Selection())


def test_flows_that_run_once_come_first(done, continuous):
    """A flow that runs once and has not yet is named; one that has is no obstacle."""
    once = FlowEntry(name="history", target="bronze", streaming=True, once=True, defined_at="a.py:3")
    manifest = done.manifest.model_copy(update={"flows": (*done.manifest.flows, once)})
    with pytest.raises(NotForContinuous, match="history") as caught:
        refuse_once_flows(continuous, manifest, set)
    assert caught.value.where == "a.py:3"
    refuse_once_flows(continuous, manifest, lambda: {"history"})
    refuse_once_flows(done.project, manifest, set)


def test_it_is_started_whatever_has_moved(continuous):
    """A continuous update waits for what is to come."""
    assert news_for(continuous, parse_run_arguments(["p"])) is None


def test_a_driver_that_keeps_running_has_its_own_settings(done, continuous):
    """Its heap among them, which has to be known before Java starts; the spec has the last word."""
    assert spark_settings(done.project) == done.project.spec.spark
    assert spark_settings(continuous)["spark.driver.memory"] == "2g"
    roomy = continuous.spec.model_copy(update={"spark": {"spark.driver.memory": "4g"}})
    assert spark_settings(replace(continuous, spec=roomy))["spark.driver.memory"] == "4g"
