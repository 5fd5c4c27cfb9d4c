"""Parts of the facade that refuse with a clear message what Spark would refuse with an internal error."""

from __future__ import annotations

import logging
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql.conf import RuntimeConfig
from pyspark.sql.streaming.listener import StreamingQueryListener
from pyspark.sql.streaming.query import StreamingQueryManager

from headwater.definitions.platform_settings import idle_settings, is_platform_setting
from headwater.errors import UnsupportedArgument
from headwater_spark.facade.action_guard import in_user_code

_log = logging.getLogger(__name__)
_TOO_LATE = ("CANNOT_MODIFY_CONFIG", "CANNOT_MODIFY_STATIC_CONFIG")


def refuse_platform_setting(key: str, call: str) -> None:
    """Refuse a setting of pipelines and flows in a source's own session, where nothing reads it; one without effect here is noted."""
    if not is_platform_setting(key) or not in_user_code():
        return
    for reason in idle_settings([key]).values():
        _log.warning("note: %s has no effect here: %s", call, reason)
        return
    raise UnsupportedArgument(
        f"{call}: settings of flows are not read from the session.",
        remedy=f"Put {key} into `configuration` in pipeline.yml for all flows, or give it to a table or flow: "
        f'spark_conf={{"{key}": ...}}.',
    )


class PipelineConf(RuntimeConfig):
    """``spark.conf`` of a source: settings of its session alone."""

    def set(self, key: str, value: Any) -> None:
        """As Spark's; a setting that must be known before Spark starts is refused with its place in ``pipeline.yml``."""
        refuse_platform_setting(key, f"spark.conf.set({key!r}, ...)")
        try:
            super().set(key, value)
        except PySparkException as error:
            if error.getCondition() not in _TOO_LATE:
                raise
            raise UnsupportedArgument(
                f"spark.conf.set({key!r}, ...): Spark is running, and this setting is read when it starts.",
                remedy=f"Put it into pipeline.yml:\n      spark:\n        {key}: {value}",
            ) from None


class PipelineQueries(StreamingQueryManager):
    """``spark.streams`` of a source."""

    def addListener(self, listener: Any) -> None:  # noqa: N802 - Spark's spelling
        """As Spark's; a listener that does not extend Spark's own class is refused: it would never be called."""
        if not isinstance(listener, StreamingQueryListener):
            raise UnsupportedArgument(
                f"addListener({type(listener).__name__}): the class does not extend Spark's StreamingQueryListener.",
                remedy="from pyspark.sql.streaming import StreamingQueryListener; class Mine(StreamingQueryListener): "
                "define onQueryStarted, onQueryProgress, onQueryIdle and onQueryTerminated. What each batch did is in "
                "the event log as well.",
            )
        super().addListener(listener)
