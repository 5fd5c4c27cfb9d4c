"""A flow's query with quarantined records in place of its source, as a batch: its current code over earlier input.

Decision 0062.
"""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headwater.quarantine import columns as c
from headwater_spark.java_classes import OPTION, java_class
from headwater_spark.plans.plan_walk import items, simple_name
from headwater_spark.rules.source_records import JSON_BACK, LEAVES, PASSING, frame_of

# The id of the quarantined row that a row was made from.
HELD_ID = "__headwater_id"
_PLANS = "org.apache.spark.sql.catalyst"
# Already applied when the record was first read: it was not late, and the first of its key.
_SKIPPED = {"Deduplicate", "DeduplicateWithinWatermark", "EventTimeWatermark", "CollectMetrics"}


def query_over(frame: DataFrame, quarantined: DataFrame) -> DataFrame | None:
    """The result of a stream's query for quarantined records, with the column ``HELD_ID``.

    Args:
        frame: the flow's query, over its source.
        quarantined: rows of the quarantine table.

    Returns:
        None where a row may come from several records, a record may give several rows, or the source is read differently now.
    """
    plan = _replaced(frame._jdf.queryExecution().analyzed(), quarantined)  # noqa: SLF001 - no public API
    return None if plan is None else frame_of(plan, quarantined.sparkSession)


def _replaced(node: Any, quarantined: DataFrame) -> Any:
    kind = simple_name(node)
    if kind in LEAVES:
        return _records(node, quarantined)
    if kind != "Project" and kind not in PASSING:
        return None
    child = _replaced(node.child(), quarantined)
    if child is None or kind in _SKIPPED:
        return child
    if kind == "Project":
        return node.copy(node.projectList().appended(child.output().last()), child)
    return node.withNewChildren(node.children().updated(0, child))


def _records(leaf: Any, quarantined: DataFrame) -> Any:
    """The records as a relation with the leaf's own column ids, which the operators above refer to."""
    schema = StructType.fromJson(json.loads(leaf.schema().json()))
    keys = F.map_keys(F.from_json(F.col(c.SOURCE_RECORD), "map<string,string>"))
    names = [name for name in schema.names if name != "_metadata"]
    if not quarantined.where(~F.arrays_overlap(keys, F.array(*[F.lit(name) for name in names]))).isEmpty():
        return None
    record = F.from_json(F.col(c.SOURCE_RECORD), schema, JSON_BACK)
    return named_columns(
        quarantined.select(record.alias("record"), F.col(c.ID).alias(HELD_ID)).select("record.*", HELD_ID),
        leaf,
    )


def named_columns(rows: DataFrame, leaf: Any) -> Any:
    """The plan of rows whose first columns are those of a leaf, under the column ids that the operators above refer to."""
    plan = rows._jdf.queryExecution().analyzed()  # noqa: SLF001
    columns = plan.output()
    for index, attribute in enumerate(items(leaf.output())):
        columns = columns.updated(index, _named(rows.sparkSession, columns.apply(index), attribute))
    project = java_class(rows.sparkSession._jvm, f"{_PLANS}.plans.logical.Project")  # noqa: SLF001
    return project(columns, plan)


def _named(spark: SparkSession, column: Any, attribute: Any) -> Any:
    """``column`` under the name and the id of another."""
    jvm: Any = spark._jvm  # noqa: SLF001
    alias = java_class(jvm, f"{_PLANS}.expressions.Alias")
    nothing = attribute.qualifier().take(0)
    return alias(
        column,
        attribute.name(),
        attribute.exprId(),
        attribute.qualifier(),
        java_class(jvm, OPTION).empty(),
        nothing,
    )
