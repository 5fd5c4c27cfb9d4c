"""Refuses Spark's real-time mode where Spark would, before a query is started.

Decision 0189.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame

from headwater.definitions.dataset import Dataset
from headwater.definitions.flow import Flow
from headwater.definitions.flow_settings import TRIGGER, is_real_time
from headwater.graph.conditions import RealTimeNotPermitted
from headwater_spark.plans.real_time import read_plan, real_time_objection


def check_real_time(frame: DataFrame, flow: Flow, dataset: Dataset, stubs: Path) -> None:
    """Raise RealTimeNotPermitted where a flow asks for real-time mode and Spark does not permit it."""
    if not is_real_time(flow.spark_conf):
        return
    objection = real_time_objection(read_plan(frame, stubs), flow.kind, dataset.sink)
    if objection is not None:
        reason, remedy = objection
        raise RealTimeNotPermitted(
            f"{flow.name!r} asks for Spark's real-time mode, which Spark 4.2 does not permit here: {reason}.",
            where=flow.location,
            remedy=f"{remedy}; or take {TRIGGER} out of the flow's spark_conf, and it runs in batches.",
        )
