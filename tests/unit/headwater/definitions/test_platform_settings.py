"""Keys of the platform are a closed list: honoured where they stand, known to be idle, or refused with the nearest name."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from headwater import pipelines as dp
from headwater.definitions import flow_settings
from headwater.definitions.pipeline_spec import PipelineSpec
from headwater.definitions.platform_settings import (
    HONOURED,
    IDLE,
    SettingPlace,
    idle_settings,
    is_platform_setting,
    wrong_place,
)
from headwater.definitions.trigger import Continuous
from headwater.errors import UnsupportedArgument
from headwater.graph.registry import Registry, registering


@pytest.mark.parametrize("place", SettingPlace)
def test_each_key_at_each_place(place: SettingPlace):
    """A key is fine at its places, refused at the others with its own; keys of Spark and of users are none of ours."""
    for key, places in HONOURED.items():
        wrong = wrong_place([key], place)
        assert (wrong is None) == (place in places), key
        assert wrong is None or (key in wrong.what and "Its place" in wrong.remedy)
    assert wrong_place([*IDLE, "spark.sql.ansi.enabled", "delta.appendOnly", "landing"], place) is None


def test_keys_of_older_pipelines():
    """Settings that once turned a feature on are in many pipelines: they are taken, with a sentence, where they stand there."""
    older = (
        "pipelines.applyChangesPreviewEnabled",
        "pipelines.enableTrackHistory",
        "pipelines.useSharedClusters",
    )
    spec = PipelineSpec.model_validate({"name": "a", "configuration": dict.fromkeys(older, "true")})
    assert set(idle_settings(spec.configuration)) == set(older)


def test_each_key_that_flows_read():
    """No key is read by code and refused where it is written."""
    read = {
        value
        for value in vars(flow_settings).values()
        if isinstance(value, str) and is_platform_setting(value)
    }
    assert read
    assert read <= set(HONOURED)


@pytest.mark.parametrize(
    ("key", "remedy"),
    [
        ("pipelines.reset.alowed", "'pipelines.reset.allowed'"),
        ("pipelines.reset.Allowed", "'pipelines.reset.allowed'"),
        ("Pipelines.Reset.Allowed", "'pipelines.reset.allowed'"),
        ("pipelines.pipelineId", "headwater move"),
        ("pipelines.mine", "another first word"),
    ],
)
def test_what_is_refused(key: str, remedy: str):
    """On a table, and in the spec: nothing unknown is stored silently."""
    with registering(Registry()), pytest.raises(UnsupportedArgument) as refused:

        @dp.table(table_properties={key: "true"})
        def orders():
            pass

    assert key in refused.value.what
    assert __file__ in str(refused.value.where)
    assert remedy in refused.value.remedy
    with pytest.raises(ValidationError, match=key):
        PipelineSpec(name="p", configuration={key: "true"})


def test_letter_case_where_it_does_not_matter():
    """Those that maintenance reads in any letter case are taken so."""
    assert wrong_place(["pipelines.autooptimize.zOrderCols"], SettingPlace.TABLE) is None


def test_a_view_has_no_flow():
    """Spark settings of a view are its readers'; settings of flows stand on a table."""
    with registering(Registry()) as registry:
        dp.temporary_view(spark_conf={"spark.sql.ansi.enabled": False}, name="v")(lambda: None)
        assert registry.flows()[0].spark_conf == {"spark.sql.ansi.enabled": "false"}
        with pytest.raises(UnsupportedArgument, match=r"pipelines\.maxFlowRetryAttempts means nothing there"):
            dp.temporary_view(spark_conf={"pipelines.maxFlowRetryAttempts": 3}, name="w")(lambda: None)


def test_what_is_idle():
    """Idle keys have their reasons, and so have those of Spark's own engine of pipelines; the others are not named."""
    idle = idle_settings(["pipelines.channel", "spark.sql.pipelines.event.queue.capacity", *HONOURED, "a"])
    assert list(idle) == ["pipelines.channel", "spark.sql.pipelines.event.queue.capacity"]
    assert all(idle.values())
    (reason,) = idle_settings(["spark.databricks.streaming.realTimeMode.enabled"]).values()
    assert "pipelines.trigger" in reason
    assert is_platform_setting("pipelines.x")
    assert not is_platform_setting("spark.sql.ansi.enabled")


@pytest.mark.parametrize(
    ("written", "form"),
    [
        ("availableNow", "trigger: available_now"),
        ({"availableNow": True}, "trigger: available_now"),
        ({"available_now": True}, "trigger: available_now"),
        ({"once": True}, "trigger: once"),
        ("Once", "trigger: once"),
    ],
)
def test_sparks_words_for_triggers(written: object, form: str):
    """Written as Spark's writer has them, `trigger(once=True)` and its kin are refused with the form that works."""
    with pytest.raises(ValidationError, match=form):
        PipelineSpec.model_validate({"name": "a", "trigger": written})


@pytest.mark.parametrize("name", ["continuous", "realTime", "real_time", "REALTIME"])
@pytest.mark.parametrize("form", [lambda name: name, lambda name: {name: "1 second"}])
def test_triggers_that_never_end(name: str, form):
    """Those of Spark are refused with the reason, in both spellings, and the working form is named, which is ours."""
    trigger = form(name)
    if trigger == "continuous":
        assert PipelineSpec(name="p", trigger=trigger).trigger == Continuous()
        return
    with pytest.raises(ValidationError, match=r"Spark's (continuous|real-time) mode") as caught:
        PipelineSpec(name="p", trigger=trigger)
    assert "`trigger: continuous`" in str(caught.value)


def test_lakeflows_continuous_flag():
    """``continuous: true`` of Lakeflow's settings names the form that a spec has, and false is an unknown key."""
    with pytest.raises(ValidationError, match="Write `trigger: continuous`"):
        PipelineSpec.model_validate({"name": "p", "continuous": True})
