"""Whether Spark takes a flow's own settings: one that belongs to the whole application would fail the flow first when it runs."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headwater.definitions.flow import Flow
from headwater.errors import UnsupportedArgument
from headwater_spark.messages.source_errors import describe


def check_settable(session: SparkSession, flow: Flow, settings: Mapping[str, str]) -> None:
    """Set each of the ``settings`` of a flow for a moment; raises UnsupportedArgument for the first that Spark does not take."""
    conf = session._jsparkSession.conf()  # noqa: SLF001 - what a source sets through its session is noted as a value of its own
    for name, value in settings.items():
        before = conf.getOption(name)
        try:
            conf.set(name, value)
        except PySparkException as error:
            raise UnsupportedArgument(
                f"spark_conf of {flow.name!r}: {name} can't be set for a query. {describe(error)}",
                where=flow.location,
                remedy="Correct its value; or, where it is for the whole application (memory, cores, jars), write it under `spark` in "
                "pipeline.yml.",
            ) from None
        conf.set(name, before.get()) if before.isDefined() else conf.unset(name)
