"""Lakeflow's settings of how flows run: how often a failed one is retried, and how often one looks for new data.

Each may stand in ``configuration`` of the pipeline, in a table's properties, or in the ``spark_conf`` of a flow: the nearer to the
flow, the stronger. Names and meaning are those of https://docs.databricks.com/aws/en/ldp/properties ("Pipelines table
properties", "Pipeline settings").
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from headwater.definitions.intervals import read_duration

FLOW_RETRIES = "pipelines.maxFlowRetryAttempts"
# The name that Spark's own pipelines have for it.
SPARK_FLOW_RETRIES = "spark.sql.pipelines.maxFlowRetryAttempts"
UPDATE_RETRIES = "pipelines.numUpdateRetryAttempts"
TRIGGER_INTERVAL = "pipelines.trigger.interval"
# Headwater's own: whether small batches of AUTO CDC may be decided and written from the driver, without a MERGE.
FAST_PATH = "pipelines.cdc.fastPath"

_NUMBERS = (FLOW_RETRIES, SPARK_FLOW_RETRIES, UPDATE_RETRIES)
_MOST = 1000


def wrong_setting(settings: Mapping[str, str], *, of_flow: bool = False) -> str | None:
    """What is wrong with the first setting that can't be honoured, in words; None where all can.

    ``of_flow``: they stand on a table or a flow, where those of whole updates mean nothing.
    """
    for name in (name for name in _NUMBERS if name in settings):
        if not settings[name].strip().isdigit() or int(settings[name]) > _MOST:
            return f"{name} is a number from 0 to {_MOST}, not {settings[name]!r}"
    if of_flow and UPDATE_RETRIES in settings:
        return f"{UPDATE_RETRIES} is for whole updates: write it into `configuration` of the pipeline"
    if FAST_PATH in settings and settings[FAST_PATH].strip().lower() not in ("true", "false"):
        return f"{FAST_PATH} is true or false, not {settings[FAST_PATH]!r}"
    if TRIGGER_INTERVAL in settings:
        interval = read_duration(settings[TRIGGER_INTERVAL])
        if interval is None or interval <= timedelta(0):
            return f"{TRIGGER_INTERVAL} is a length of time like '10 seconds', not {settings[TRIGGER_INTERVAL]!r}"
    return None


def flow_retries(*settings: Mapping[str, str], default: int) -> int:
    """How often a flow is retried. ``settings``: the nearest to the flow first."""
    values = (
        level[name] for level in settings for name in (FLOW_RETRIES, SPARK_FLOW_RETRIES) if name in level
    )
    return int(next(values, default))


def trigger_interval(*settings: Mapping[str, str]) -> timedelta | None:
    """How long a flow waits from one look to the next; None where nothing says so. ``settings``: as for ``flow_retries``."""
    return next(
        (read_duration(level[TRIGGER_INTERVAL]) for level in settings if TRIGGER_INTERVAL in level), None
    )


def fast_path(*settings: Mapping[str, str]) -> bool:
    """Whether batches of AUTO CDC may take the fast path. ``settings``: as for ``flow_retries``."""
    return (
        next((level[FAST_PATH] for level in settings if FAST_PATH in level), "true").strip().lower() == "true"
    )
