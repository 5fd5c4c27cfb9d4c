"""Adds the source's record to each row of a query, where a row comes from one record: for quarantine and messages.

One column is carried from the stream's leaf up through every operator of the user's plan.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StringType, StructType

from headwater_spark.java_classes import java_class
from headwater_spark.plans.names import quoted
from headwater_spark.plans.plan_walk import class_name, items, simple_name

# Timestamps to the microsecond, in UTC whatever the session's zone: what is read back is what was there.
JSON_OPTIONS = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
# For reading what was written with these. A column with the name of corrupt records is an ordinary one here: it would
# come back as NULL, and a malformed line as a row without a fault.
JSON_BACK = {**JSON_OPTIONS, "mode": "FAILFAST", "columnNameOfCorruptRecord": "__headwater_none"}
# Of each row: where its record lies, and the record. A struct of topic, partition, offset, file, record.
# Of a union of unlike sources the record is JSON, and Kafka's value stands beside it.
SOURCE = "__headwater_source"
_FILE = "__headwater_file"
LEAVES = {
    "StreamingRelation",
    "StreamingRelationV2",
    "LogicalRelation",
    "DataSourceV2Relation",
    "LogicalRDD",
}
# Operators that give at most one row for each of their input, and pass its columns on.
PASSING = {
    "Filter", "SubqueryAlias", "EventTimeWatermark", "CollectMetrics", "Deduplicate", "DeduplicateWithinWatermark",
    "Repartition", "RepartitionByExpression", "ResolvedHint",
}  # fmt: skip
_COLUMNAR = ("delta", "parquet", "orc")


def with_source(frame: DataFrame, *, cheap: bool = False) -> DataFrame:
    """The frame with the column ``SOURCE``, or unchanged where a row may come from several records, or a record give several rows.

    Args:
        cheap: only where that reads no more of the source than the query does by itself (not of columnar files).
    """
    session = frame.sparkSession
    plan = _carried(frame._jdf.queryExecution().analyzed(), session, cheap=cheap)  # noqa: SLF001 - no public face
    return frame if plan is None else frame_of(plan, session)


def without_source(frame: DataFrame) -> DataFrame:
    """The frame without the column."""
    return frame.drop(SOURCE) if SOURCE in frame.columns else frame


def _carried(node: Any, session: SparkSession, *, cheap: bool) -> Any:
    kind = simple_name(node)
    if kind in LEAVES:
        return None if cheap and _is_columnar(node) else _leaf(node, session)
    if kind == "Union":
        return _united(node, session, cheap=cheap)
    if kind != "Project" and kind not in PASSING:
        return None
    child = _carried(node.child(), session, cheap=cheap)
    if child is None:
        return None
    if kind == "Project":
        return node.copy(node.projectList().appended(child.output().last()), child)
    return node.withNewChildren(node.children().updated(0, child))


def _united(node: Any, session: SparkSession, *, cheap: bool) -> Any:
    """Each input's records beside its rows; as JSON where the inputs have other columns than each other."""
    children = node.children()
    inputs = [_carried(child, session, cheap=cheap) for child in items(children)]
    if any(plan is None for plan in inputs):
        return None
    frames = [frame_of(plan, session) for plan in inputs]
    if len({frame.schema[SOURCE].dataType.simpleString() for frame in frames}) > 1:
        frames = [frame.withColumn(SOURCE, as_text(frame)) for frame in frames]
    for index, frame in enumerate(frames):
        children = children.updated(index, frame._jdf.queryExecution().analyzed())  # noqa: SLF001
    return node.withNewChildren(children)


def as_text(frame: DataFrame) -> Column:
    """The frame's records as JSON text, with Kafka's value beside it; records that are text already stay as they are."""
    source = frame.schema[SOURCE].dataType
    assert isinstance(source, StructType)
    if isinstance(source["record"].dataType, StringType):
        return F.col(SOURCE)
    place = [F.col(f"{SOURCE}.{name}") for name in ("topic", "partition", "offset", "file")]
    value = F.col(f"{SOURCE}.record.value") if has_bytes(frame.schema) else _null("value", "binary")
    record = F.to_json(F.col(f"{SOURCE}.record"), JSON_OPTIONS).alias("record")
    return F.struct(*place, record, value.alias("value"))


def has_bytes(schema: StructType) -> bool:
    """Whether the records have a value in bytes, as Kafka's have; or, where they are JSON, one beside it."""
    source = schema[SOURCE].dataType
    assert isinstance(source, StructType)
    record = source["record"].dataType
    fields = record if isinstance(record, StructType) else source
    return "value" in fields.names and isinstance(fields["value"].dataType, BinaryType)


def _leaf(node: Any, session: SparkSession) -> Any:
    frame = frame_of(node, session)
    columns = [F.col(quoted(name)) for name in frame.columns]
    record = F.struct(*columns)
    none = F.lit(None)
    if {"topic", "partition", "offset", "timestampType"} <= set(frame.columns):
        place = [F.col("topic"), F.col("partition"), F.col("offset"), none.cast("string").alias("file")]
    else:
        # In a column of its own: a struct that is not deterministic is computed for every row, even where it is not used.
        frame = frame.select("*", F.input_file_name().alias(_FILE))
        file = F.nullif(F.col(_FILE), F.lit(""))
        place = [
            _null("topic", "string"),
            _null("partition", "int"),
            _null("offset", "bigint"),
            file.alias("file"),
        ]
    carried = frame.select(*columns, F.struct(*place, record.alias("record")).alias(SOURCE))
    return carried._jdf.queryExecution().analyzed()  # noqa: SLF001


def _null(name: str, kind: str) -> Column:
    return F.lit(None).cast(kind).alias(name)


def frame_of(plan: Any, session: SparkSession) -> DataFrame:
    """A plan of the JVM's as a frame."""
    dataset = java_class(session._jvm, "org.apache.spark.sql.classic.Dataset")  # noqa: SLF001
    return DataFrame(dataset.ofRows(session._jsparkSession, plan), session)  # noqa: SLF001


def _is_columnar(leaf: Any) -> bool:
    if class_name(leaf).endswith(".StreamingRelation"):
        source = str(leaf.dataSource().className()).lower()
        return any(name in source for name in _COLUMNAR)
    return not class_name(leaf).endswith(".StreamingRelationV2")
