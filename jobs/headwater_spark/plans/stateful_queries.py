"""Stateful queries: state that open Spark can't store is refused, and the settings of the state store are fixed at the first start."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, UserDefinedType

from headwater.definitions.flow import Flow
from headwater.errors import QueryFailed
from headwater_spark.plans.plan_walk import plan_nodes, simple_name

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
PARTITIONS = "spark.sql.shuffle.partitions"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_STATEFUL = {
    "Aggregate", "Deduplicate", "DeduplicateWithinWatermark", "FlatMapGroupsWithState", "FlatMapGroupsInPandasWithState",
    "TransformWithState", "TransformWithStateInPySpark", "GlobalLimit", "Distinct",
}  # fmt: skip


def is_stateful(frame: DataFrame) -> bool:
    """Whether the stream keeps state: an aggregation, a deduplication, a join of streams, a user's own."""
    if not frame.isStreaming:
        return False
    for node in plan_nodes(frame._jdf.queryExecution().analyzed()):  # noqa: SLF001 - no public face in Python
        kind = simple_name(node)
        if not node.isStreaming():
            continue
        if kind in _STATEFUL:
            return True
        if kind == "Join" and node.left().isStreaming() and node.right().isStreaming():
            return True
    return False


def state_settings(recorded: Mapping[str, str], current: Mapping[str, str | None]) -> dict[str, str]:
    """The settings that a stateful flow keeps for the life of its checkpoint.

    Args:
        recorded: those of its first start, which take precedence. Empty at the first start.
        current: the session's settings now; None where a setting was left to Headwater.
    """
    if recorded:
        return dict(recorded)
    return {PARTITIONS: current.get(PARTITIONS) or "200", PROVIDER: current.get(PROVIDER) or _ROCKSDB}


def overruled(recorded: Mapping[str, str], current: Mapping[str, str | None]) -> dict[str, str]:
    """The settings that are not applied, because the state was created with other values."""
    return {key: new for key, value in recorded.items() if (new := current.get(key)) and new != value}


def check_state(frame: DataFrame, flow: Flow) -> None:
    """Raise QueryFailed where the query keeps state that this version of PySpark can't read back."""
    for node in plan_nodes(frame._jdf.queryExecution().analyzed()):  # noqa: SLF001
        if simple_name(node) != "FlatMapGroupsInPandasWithState":
            continue
        state = StructType.fromJson(json.loads(str(node.stateType().json())))
        column = next((field.name for field in state.fields if _lost_in_lower_case(field.dataType)), None)
        if column is not None:
            raise QueryFailed(
                f"{flow.name!r} keeps an array or map of a type of its own in the state column {column!r} of applyInPandasWithState. "
                "PySpark 4.2 hands the state's schema to its workers in lower case, and they can't read such a type from it.",
                where=flow.location,
                remedy="Use transformWithStateInPandas, or keep the values as text: json.dumps(...) in a STRING column.",
            )


def _lost_in_lower_case(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return any(_lost_in_lower_case(field.dataType) for field in kind.fields)
    return isinstance(kind, ArrayType | MapType | UserDefinedType)
