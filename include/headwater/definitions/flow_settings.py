"""Lakeflow's settings of how flows run: how often a failed one is retried, and how often one looks for new data.

Each may stand in ``configuration`` of the pipeline, in a table's properties, or in the ``spark_conf`` of a flow: the nearer to the
flow, the stronger. Names and meaning are those of https://docs.databricks.com/aws/en/ldp/properties ("Pipelines table
properties", "Pipeline settings").
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta

from headwater.definitions.intervals import read_duration

FLOW_RETRIES = "pipelines.maxFlowRetryAttempts"
# The name that Spark's own pipelines have for it.
SPARK_FLOW_RETRIES = "spark.sql.pipelines.maxFlowRetryAttempts"
# The shortest and the longest wait before a retry, as Spark's own pipelines name them.
FIRST_WAIT = "spark.sql.pipelines.execution.watchdog.minRetryTime"
LONGEST_WAIT = "spark.sql.pipelines.execution.watchdog.maxRetryTime"
UPDATE_RETRIES = "pipelines.numUpdateRetryAttempts"
# How many flows of an update run side by side, as Spark's own pipelines name it; 0 is no limit, there as here.
CONCURRENT_FLOWS = "spark.sql.pipelines.execution.maxConcurrentFlows"
TRIGGER_INTERVAL = "pipelines.trigger.interval"
# Of a flow alone: Spark's real-time mode, as Lakeflow spells it.
TRIGGER = "pipelines.trigger"
# Headwater's own: whether small batches of AUTO CDC may be decided and written from the driver, without a MERGE.
FAST_PATH = "pipelines.cdc.fastPath"
# Of a table: whether a full refresh may empty it; and whether maintenance looks after it, in any letter case.
RESET_ALLOWED = "pipelines.reset.allowed"
MANAGED = "pipelines.autoOptimize.managed"

# How often a flow of a continuous pipeline looks for new data where nothing says so, as on Lakeflow.
STREAM_INTERVAL = timedelta(seconds=5)
VIEW_INTERVAL = timedelta(minutes=1)
VIEW_INTERVAL_ELSEWHERE = timedelta(minutes=10)
# How often a flow in real-time mode commits its position where it says nothing, as on Lakeflow, and the least that Spark takes.
REAL_TIME_INTERVAL = timedelta(minutes=5)
LEAST_REAL_TIME_INTERVAL = timedelta(seconds=5)

_NUMBERS = (FLOW_RETRIES, SPARK_FLOW_RETRIES, UPDATE_RETRIES, CONCURRENT_FLOWS)
_TRUTH_VALUES = tuple(name.lower() for name in (FAST_PATH, RESET_ALLOWED, MANAGED))
_OF_UPDATES = (UPDATE_RETRIES, CONCURRENT_FLOWS)
_MOST = 1000
_SPARKS_TIME = re.compile(r"(\d+)(ms|s|m|min|h|d)?")


def wrong_setting(settings: Mapping[str, str], *, of_flow: bool = False) -> str | None:
    """What is wrong with the first setting that can't be honoured, in words; None where all can.

    ``of_flow``: they stand on a table or a flow, where those of whole updates mean nothing.
    """
    for name in (name for name in _NUMBERS if name in settings):
        if not settings[name].strip().isdigit() or int(settings[name]) > _MOST:
            return f"{name} is a number from 0 to {_MOST}, not {settings[name]!r}"
    whole = next((name for name in _OF_UPDATES if of_flow and name in settings), None)
    if whole is not None:
        return f"{whole} is for whole updates: write it into `configuration` of the pipeline"
    for name in (name for name in settings if name.lower() in _TRUTH_VALUES):
        # Anything but these two would count as true: a table that must not be emptied would be.
        if settings[name].lower() not in ("true", "false"):
            return f"{name} is true or false, not {settings[name]!r}"
    return _wrong_wait(settings) or _wrong_trigger(settings)


def _wrong_wait(settings: Mapping[str, str]) -> str | None:
    for name in (name for name in (FIRST_WAIT, LONGEST_WAIT) if name in settings):
        wait = _wait(settings[name])
        if wait is None or wait <= timedelta(0):
            return (
                f"{name} is a length of time as Spark spells it, like '10s' or '5min', not {settings[name]!r}"
            )
    return None


def _wrong_trigger(settings: Mapping[str, str]) -> str | None:
    if TRIGGER in settings and settings[TRIGGER].strip().lower() != "realtime":
        how_often = f"how often a flow looks is {TRIGGER_INTERVAL}"
        return f"{TRIGGER} is 'RealTime', or left out, not {settings[TRIGGER]!r}; {how_often}"
    if TRIGGER_INTERVAL in settings:
        interval = read_duration(settings[TRIGGER_INTERVAL])
        if interval is None or interval <= timedelta(0):
            return f"{TRIGGER_INTERVAL} is a length of time like '10 seconds', not {settings[TRIGGER_INTERVAL]!r}"
        if TRIGGER in settings and interval < LEAST_REAL_TIME_INTERVAL:
            return f"{TRIGGER_INTERVAL} of a flow in real-time mode is how often it commits its position: 5 seconds at least"
    return None


def is_real_time(settings: Mapping[str, str]) -> bool:
    """Whether a flow asks for Spark's real-time mode. ``settings``: its own."""
    return TRIGGER in settings


def real_time_interval(settings: Mapping[str, str]) -> timedelta:
    """How often a flow in real-time mode commits its position. ``settings``: its own; those of the pipeline are for batches."""
    return trigger_interval(settings) or REAL_TIME_INTERVAL


def flow_retries(*settings: Mapping[str, str], default: int) -> int:
    """How often a flow is retried. ``settings``: the nearest to the flow first."""
    values = (
        level[name] for level in settings for name in (FLOW_RETRIES, SPARK_FLOW_RETRIES) if name in level
    )
    return int(next(values, default))


def concurrent_flows(*settings: Mapping[str, str], default: int) -> int | None:
    """How many flows of an update may run side by side, None without a limit. ``settings``: of the pipeline, the strongest first."""
    values = (int(level[CONCURRENT_FLOWS]) for level in settings if CONCURRENT_FLOWS in level)
    return next(values, default) or None


def retry_wait(name: str, *settings: Mapping[str, str], default: float) -> float:
    """The seconds that FIRST_WAIT or LONGEST_WAIT says. ``settings``: as for ``flow_retries``."""
    waits = (_wait(level[name]) for level in settings if name in level)
    wait = next(waits, None)
    return default if wait is None else wait.total_seconds()


def _wait(text: str) -> timedelta | None:
    """A length of time as Spark reads it, which sees these settings, too; a bare number means seconds."""
    match = _SPARKS_TIME.fullmatch(text.strip().lower())
    return None if match is None else read_duration(f"{match[1]} {match[2] or 's'}")


def trigger_interval(*settings: Mapping[str, str]) -> timedelta | None:
    """How long a flow waits from one look to the next; None where nothing says so. ``settings``: as for ``flow_retries``."""
    return next(
        (read_duration(level[TRIGGER_INTERVAL]) for level in settings if TRIGGER_INTERVAL in level), None
    )


def continuous_interval(*settings: Mapping[str, str], streaming: bool, over_delta: bool) -> timedelta:
    """How long a flow of a continuous pipeline waits from one look to the next. ``settings``: as for ``flow_retries``.

    Args:
        streaming: whether it runs as a streaming query; another is computed again.
        over_delta: whether all that it reads are Delta tables, whose logs say cheaply whether they have moved.
    """
    usual = STREAM_INTERVAL if streaming else VIEW_INTERVAL if over_delta else VIEW_INTERVAL_ELSEWHERE
    return trigger_interval(*settings) or usual


def fast_path(*settings: Mapping[str, str]) -> bool:
    """Whether batches of AUTO CDC may take the fast path. ``settings``: as for ``flow_retries``."""
    return (
        next((level[FAST_PATH] for level in settings if FAST_PATH in level), "true").strip().lower() == "true"
    )
