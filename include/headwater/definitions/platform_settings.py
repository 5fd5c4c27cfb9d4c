"""Keys that begin with ``pipelines.``: a closed list, each honoured where it stands, without effect here, or refused.

They come from Lakeflow (https://docs.databricks.com/aws/en/ldp/properties). Spark and Delta store any key silently.

Decision 0149.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from headwater.definitions.flow_settings import (
    CONCURRENT_FLOWS,
    FAST_PATH,
    FIRST_WAIT,
    FLOW_RETRIES,
    LONGEST_WAIT,
    MANAGED,
    RESET_ALLOWED,
    SPARK_FLOW_RETRIES,
    TRIGGER,
    TRIGGER_INTERVAL,
    UPDATE_RETRIES,
)
from headwater.suggestions import nearest


class SettingPlace(StrEnum):
    """Where a setting stands."""

    TABLE = "table_properties"
    FLOW = "spark_conf"
    VIEW = "spark_conf of a view"
    CONFIGURATION = "configuration"
    SPARK = "spark"


_EVERYWHERE = (SettingPlace.CONFIGURATION, SettingPlace.SPARK, SettingPlace.TABLE, SettingPlace.FLOW)
HONOURED: dict[str, tuple[SettingPlace, ...]] = {
    FLOW_RETRIES: _EVERYWHERE,
    SPARK_FLOW_RETRIES: _EVERYWHERE,
    FIRST_WAIT: _EVERYWHERE,
    LONGEST_WAIT: _EVERYWHERE,
    TRIGGER: (SettingPlace.FLOW,),
    TRIGGER_INTERVAL: _EVERYWHERE,
    UPDATE_RETRIES: (SettingPlace.CONFIGURATION,),
    CONCURRENT_FLOWS: (SettingPlace.CONFIGURATION, SettingPlace.SPARK),
    MANAGED: (SettingPlace.TABLE,),
    "pipelines.autoOptimize.zOrderCols": (SettingPlace.TABLE,),
    FAST_PATH: (SettingPlace.CONFIGURATION, SettingPlace.TABLE),
    "pipelines.cdc.tombstoneGCThresholdInSeconds": (SettingPlace.TABLE,),
    RESET_ALLOWED: (SettingPlace.TABLE,),
}
# Read without regard to letter case.
_ANY_CASE = ("pipelines.autooptimize.managed", "pipelines.autooptimize.zordercols")
IDLE = {
    "pipelines.applyChangesPreviewEnabled": "AUTO CDC is always there",
    "pipelines.cdc.tombstoneGCFrequencyInSeconds": "deletes that are old enough are forgotten with each batch",
    "pipelines.channel": "the version that runs is the one that is installed",
    "pipelines.clusterShutdown.delay": "Spark ends with the update",
    "pipelines.enableTrackHistory": "TRACK HISTORY ON is always there",
    "pipelines.incompatibleViewCheck.enabled": "views are checked at each start",
    "pipelines.tableManagedByMultiplePipelinesCheck.enabled": "a table of another pipeline is never written to",
    "pipelines.useSharedClusters": "Spark ends with the update",
    "spark.databricks.streaming.realTimeMode.enabled": "a flow's own pipelines.trigger is enough",
}
# Table properties of the platform's own Delta, which open Delta refuses; no row depends on them. In any letter case.
IDLE_PROPERTIES = {
    "delta.tunefilesizesforrewrites": "file sizes are those of the writer; `headwater maintenance` compacts",
    "delta.targetfilesize": "file sizes are those of the writer; `headwater maintenance` compacts",
    "delta.parquet.compression.codec": "spark.sql.parquet.compression.codec under `spark` in pipeline.yml is for all tables",
}
_REFUSED = {
    "pipelines.pipelineId": "It does not move a table. Move it with `headwater move`, and take the property out.",
}
_PREFIX = "pipelines."
# What the engine of Spark's own pipelines reads, which does not run here.
_SPARK_PREFIX = "spark.sql.pipelines."
_OF_SPARK = tuple(key for key in HONOURED if key.startswith(_SPARK_PREFIX))


@dataclass(frozen=True)
class WrongSetting:
    """Why a setting is refused, and what to do."""

    what: str
    remedy: str


def wrong_place(names: Iterable[str], place: SettingPlace) -> WrongSetting | None:
    """What is wrong with the first of the ``names`` that is neither honoured at its place nor known to be idle."""
    for name in names:
        lowered = name.lower()
        if not lowered.startswith(_PREFIX) and name not in _OF_SPARK:
            continue
        if name in IDLE:
            continue
        if name in _REFUSED:
            return WrongSetting(f"{name} can't be honoured", _REFUSED[name])
        exact = (
            next((key for key in HONOURED if key.lower() == lowered), None) if lowered in _ANY_CASE else name
        )
        if exact not in HONOURED:
            return WrongSetting(f"there is no setting {name!r}", _nearest(lowered))
        if place not in HONOURED[exact]:
            return WrongSetting(f"{name} means nothing there", f"Its place: {_places(HONOURED[exact])}.")
    return None


def idle_settings(names: Iterable[str]) -> dict[str, str]:
    """Those that are accepted and change nothing here, each with the reason."""
    reasons = {name: IDLE[name] for name in names if name in IDLE}
    others = (name for name in names if name.startswith(_SPARK_PREFIX) and name not in _OF_SPARK)
    return reasons | dict.fromkeys(
        others, "it is for Spark's own engine of pipelines, which does not run here"
    )


def is_platform_setting(name: str) -> bool:
    """Whether a key is one of the platform's, of pipelines and flows rather than of Spark's session."""
    return name.lower().startswith((_PREFIX, _SPARK_PREFIX))


def _nearest(lowered: str) -> str:
    by_suffix = {
        key.lower().removeprefix(_PREFIX): key for key in (*HONOURED, *IDLE) if key.startswith(_PREFIX)
    }
    near = nearest(lowered.removeprefix(_PREFIX), by_suffix)
    if near is not None:
        return f"The nearest is {by_suffix[near]!r}."
    return f"Known are: {', '.join(sorted(by_suffix.values()))}. A key of your own needs another first word."


def _places(places: Iterable[SettingPlace]) -> str:
    words = {
        SettingPlace.CONFIGURATION: "`configuration` in pipeline.yml",
        SettingPlace.SPARK: "`spark` there",
        SettingPlace.TABLE: "table_properties of a table",
        SettingPlace.FLOW: "spark_conf of a table or flow",
    }
    return ", ".join(words[place] for place in places)
