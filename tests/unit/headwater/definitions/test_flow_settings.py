"""Lakeflow's settings of flows are read from where they stand, the nearest first, and nonsense is refused where it stands."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pydantic import ValidationError

from headwater import pipelines as dp
from headwater.definitions.flow_settings import (
    CONCURRENT_FLOWS,
    FAST_PATH,
    FIRST_WAIT,
    FLOW_RETRIES,
    LONGEST_WAIT,
    TRIGGER,
    TRIGGER_INTERVAL,
    UPDATE_RETRIES,
    concurrent_flows,
    continuous_interval,
    fast_path,
    flow_retries,
    is_real_time,
    real_time_interval,
    retry_wait,
    trigger_interval,
    wrong_setting,
)
from headwater.definitions.pipeline_spec import PipelineSpec
from headwater.errors import UnsupportedArgument
from headwater.graph.registry import Registry, registering


def test_the_nearest_to_the_flow_counts():
    """A flow's own setting is stronger than its table's, and that than the pipeline's; Spark's name means the same."""
    flow, table, pipeline = {FLOW_RETRIES: "0"}, {FLOW_RETRIES: "4"}, {f"spark.sql.{FLOW_RETRIES}": "7"}
    assert [flow_retries(*given, default=2) for given in ((flow, table), ({}, table), (pipeline,), ({},))] == [
        0, 4, 7, 2,
    ]  # fmt: skip
    hourly, quick = {TRIGGER_INTERVAL: "1 hour"}, {TRIGGER_INTERVAL: "10 seconds"}
    assert trigger_interval({}, hourly, quick) == timedelta(hours=1)
    assert trigger_interval({}, {}) is None
    assert [fast_path(*given) for given in (({}, {}), ({FAST_PATH: "False"}, {}), ({FAST_PATH: "true"}, {FAST_PATH: "false"}))] == [True, False, True]  # fmt: skip


def test_how_many_flows_run_side_by_side():
    """What `configuration` says is stronger than what `spark` says; 0 is no limit; a flow can't say so for the others."""
    levels = ({}, {CONCURRENT_FLOWS: "16"}), ({CONCURRENT_FLOWS: "0"}, {CONCURRENT_FLOWS: "16"}), ({}, {})
    assert [concurrent_flows(*given, default=4) for given in levels] == [16, None, 4]
    assert wrong_setting({CONCURRENT_FLOWS: "16"}) is None
    assert "is a number from 0" in (wrong_setting({CONCURRENT_FLOWS: "many"}) or "")
    assert f"{CONCURRENT_FLOWS} is for whole updates" in (
        wrong_setting({CONCURRENT_FLOWS: "16"}, of_flow=True) or ""
    )


def test_intervals_of_a_continuous_pipeline():
    """As on Lakeflow: 5 s a stream, a minute a view over Delta tables, ten over others; what is set counts for all."""
    found = [
        continuous_interval({}, streaming=streaming, over_delta=delta).total_seconds()
        for streaming, delta in ((True, True), (True, False), (False, True), (False, False))
    ]
    assert found == [5, 5, 60, 600]
    given = {TRIGGER_INTERVAL: "2 minutes"}
    assert continuous_interval({}, given, streaming=False, over_delta=True) == timedelta(minutes=2)


def test_waits_are_spelled_as_in_spark():
    """A number means seconds; a length of time means itself; the nearest level counts."""
    levels = ({}, {FIRST_WAIT: "7"}, {FIRST_WAIT: "1min", LONGEST_WAIT: "1h"})
    assert retry_wait(FIRST_WAIT, *levels, default=5) == 7
    assert retry_wait(LONGEST_WAIT, *levels, default=5) == 3600
    assert retry_wait(LONGEST_WAIT, {}, default=5) == 5
    assert retry_wait(FIRST_WAIT, {FIRST_WAIT: "250ms"}, default=5) == 0.25


@pytest.mark.parametrize(
    "wrong",
    [
        {FIRST_WAIT: "0"},
        {LONGEST_WAIT: "soon"},
        {LONGEST_WAIT: "1 minute"},
        {FLOW_RETRIES: "many"},
        {FLOW_RETRIES: "-1"},
        {TRIGGER_INTERVAL: "soon"},
        {TRIGGER_INTERVAL: "0 seconds"},
        {FAST_PATH: "maybe"},
    ],
)
def test_nonsense_is_refused(wrong):
    """In the spec, and on a table with the line that says it."""
    (name,) = wrong
    with pytest.raises(ValidationError, match=name):
        PipelineSpec(name="p", configuration=wrong)
    for argument in ("spark_conf", "table_properties"):
        with registering(Registry()), pytest.raises(UnsupportedArgument) as refused:

            @dp.table(**{argument: wrong})
            def orders():
                pass

        assert name in refused.value.what
        assert __file__ in refused.value.where
        assert refused.value.remedy


@pytest.mark.parametrize("name", ["pipelines.reset.allowed", "pipelines.autoOptimize.managed"])
def test_what_protects_a_table_is_true_or_false(name: str):
    """Anything but "false" would count as true, and a table that says "no" to a full refresh would be emptied by one."""
    for value in ("no", "0", "", "false "):
        with registering(Registry()), pytest.raises(UnsupportedArgument, match="is true or false") as refused:
            dp.create_streaming_table("orders", table_properties={name: value})
        assert name in refused.value.what
    for value in (False, "FALSE", "true"):
        with registering(Registry()) as registry:
            dp.create_streaming_table("orders", table_properties={name: value})
            assert registry.datasets()


def test_retries_of_updates_are_airflows():
    """The setting counts where ``airflow.retries`` does not say otherwise, and has no meaning on a table."""
    configuration = {UPDATE_RETRIES: "4"}
    assert PipelineSpec(name="p").update_retries == 2
    assert PipelineSpec(name="p", configuration=configuration).update_retries == 4
    assert PipelineSpec(name="p", configuration=configuration, airflow={"retries": 1}).update_retries == 1
    with registering(Registry()), pytest.raises(UnsupportedArgument, match="whole updates"):

        @dp.table(spark_conf=configuration)
        def orders():
            pass


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({TRIGGER: "RealTime"}, None),
        ({TRIGGER: "realtime", TRIGGER_INTERVAL: "5 seconds"}, None),
        ({TRIGGER: "ProcessingTime"}, "'RealTime', or left out"),
        ({TRIGGER: "RealTime", TRIGGER_INTERVAL: "1 second"}, "5 seconds at least"),
        ({TRIGGER_INTERVAL: "1 second"}, None),
    ],
)
def test_real_time_is_asked_for_by_a_flow(given: dict[str, str], wrong: str | None):
    """As on Lakeflow, in a flow's own settings; its interval is how often its position is committed, which Spark bounds."""
    message = wrong_setting(given, of_flow=True)
    assert message is None if wrong is None else wrong in str(message)
    assert is_real_time(given) is (TRIGGER in given)
    if wrong is None:
        expected = (
            timedelta(seconds=5) if given.get(TRIGGER_INTERVAL) == "5 seconds" else timedelta(minutes=5)
        )
        assert TRIGGER not in given or real_time_interval(given) == expected
    with pytest.raises(ValidationError, match="means nothing there"):
        PipelineSpec.model_validate({"name": "p", "configuration": {TRIGGER: "RealTime"}})
