"""Refuse table properties that Delta would not take, before anything is written."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headwater.definitions.dataset import Dataset
from headwater.errors import UnsupportedArgument
from headwater_spark.delta_writes.delta_internals import DELTA
from headwater_spark.java_classes import PYTHON_UTILS, java_class
from headwater_spark.messages.source_errors import describe

# Names with this prefix are Delta's; others are free, and mean nothing to it.
_PREFIX = "delta."


def check_table_properties(session: SparkSession, dataset: Dataset) -> None:
    """Have Delta judge the names and values of a table's own ``delta.`` properties.

    Raises:
        UnsupportedArgument: it does not know one, or can't take its value.
    """
    own = {
        name: value for name, value in dataset.table_properties.items() if name.lower().startswith(_PREFIX)
    }
    if not own:
        return
    jvm = session._jvm  # noqa: SLF001 - Delta's settings have no public face in Python
    judge = getattr(java_class(jvm, f"{DELTA}.DeltaConfigs$"), "MODULE$")
    try:
        # Together: some are only wrong beside another.
        judge.validateConfigurations(java_class(jvm, PYTHON_UTILS).toScalaMap(own))
    except PySparkException as error:
        shown = ", ".join(f"{name}={value}" for name, value in own.items())
        raise UnsupportedArgument(
            f"{dataset.name!r}: Delta does not take these table properties: {shown}. {describe(error)}",
            where=dataset.location,
            remedy="Correct their names or values, or leave them out; docs.delta.io has them under 'Table properties'.",
        ) from None
