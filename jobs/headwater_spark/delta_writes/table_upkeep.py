"""Bring an existing table up to its declaration: comments, properties, clustering. What can't be changed is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headwater.definitions.dataset import Dataset, DatasetKind
from headwater.errors import FlowFailed
from headwater_spark.delta_writes.tables import DECLARED, declared_names, reshape_table
from headwater_spark.plans.names import quoted
from headwater_spark.plans.schema_text import GENERATED

if TYPE_CHECKING:
    from deltalake import DeltaTable as LogReader


def keep_up(
    spark: SparkSession, dataset: Dataset, kind: DatasetKind, path: Path, schema: StructType | None
) -> None:
    """Commit only what differs.

    Args:
        kind: what the dataset turned out to be: a materialized view may take another shape, a streaming table may not.
        schema: the schema that the user gave, if any.

    Raises:
        FlowFailed: where the declaration changes the table's partitioning or computed columns: that takes a full refresh.
    """
    from deltalake import DeltaTable as LogReader

    table = LogReader(str(path))
    changed = _shape_change(table, dataset, schema)
    if not changed and schema is not None and kind is DatasetKind.MATERIALIZED_VIEW:
        changed = _other_columns(table, schema)
    if changed and kind is DatasetKind.MATERIALIZED_VIEW:
        if dataset.schema is not None:
            reshape_table(spark, dataset, path, schema or StructType(), json.dumps({"replaced": changed}))
    elif changed:
        raise FlowFailed(
            f"The table {dataset.name!r} has rows, and its declaration now says: {changed}.",
            where=dataset.location,
            remedy=f"Rebuild it, --full-refresh {dataset.name}, or put the declaration back.",
        )
    _properties(spark, table, dataset, path)
    if schema is not None:
        _column_comments(spark, table, schema, path)
    keep_clustering(spark, dataset, path)


def _shape_change(table: LogReader, dataset: Dataset, schema: StructType | None) -> str | None:
    partitions = list(table.metadata().partition_columns)
    if [name.lower() for name in partitions] != [name.lower() for name in dataset.partition_columns]:
        return f"partition_cols={list(dataset.partition_columns)} (so far {partitions})"
    fields = {field["name"].lower(): field for field in json.loads(table.schema().to_json())["fields"]}
    for field in schema.fields if schema else ():
        stored = fields.get(field.name.lower())
        generated = field.metadata.get(GENERATED)
        if stored is None:
            if generated or not field.nullable:
                return f"a new column {field.name} that is NOT NULL or computed"
            continue
        if stored["metadata"].get("delta.generationExpression") != generated:
            return f"another way to compute the column {field.name}"
        if bool(stored["nullable"]) != field.nullable:
            return f"the column {field.name} is {'NULL' if field.nullable else 'NOT NULL'}"
    return None


def _other_columns(table: LogReader, schema: StructType) -> str | None:
    """What overwriting the rows alone would not do."""
    stored = StructType.fromJson(json.loads(table.schema().to_json()))
    before = {field.name.lower(): field.dataType for field in stored.fields}
    now = {field.name.lower(): field.dataType for field in schema.fields}
    return "other columns" if before != now else None


def _properties(spark: SparkSession, table: LogReader, dataset: Dataset, path: Path) -> None:
    metadata = table.metadata()
    stored: dict[str, Any] = dict(metadata.configuration)
    before = json.loads(stored.get(DECLARED) or "[]")
    wanted = dict(dataset.table_properties)
    if wanted or dataset.comment or before:
        wanted[DECLARED] = declared_names(dataset)
    changed = {key: value for key, value in wanted.items() if stored.get(key) != value}
    if changed:
        pairs = ", ".join(f"'{_escaped(k)}' = '{_escaped(v)}'" for k, v in changed.items())
        spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ({pairs})")
    gone = [
        key for key in before if key != "comment" and key not in dataset.table_properties and key in stored
    ]
    if gone:
        keys = ", ".join(f"'{_escaped(key)}'" for key in gone)
        spark.sql(f"ALTER TABLE delta.`{path}` UNSET TBLPROPERTIES IF EXISTS ({keys})")
    if dataset.comment and metadata.description != dataset.comment:
        spark.sql(f"COMMENT ON TABLE delta.`{path}` IS '{_escaped(dataset.comment)}'")
    if not dataset.comment and "comment" in before and metadata.description:
        spark.sql(f"COMMENT ON TABLE delta.`{path}` IS NULL")


def _column_comments(spark: SparkSession, table: LogReader, schema: StructType, path: Path) -> None:
    fields = {field["name"].lower(): field for field in json.loads(table.schema().to_json())["fields"]}
    for field in schema.fields:
        stored = fields.get(field.name.lower())
        wanted = field.metadata.get("comment", "")
        if stored is not None and stored["metadata"].get("comment", "") != wanted:
            spark.sql(
                f"ALTER TABLE delta.`{path}` ALTER COLUMN {quoted(field.name)} COMMENT '{_escaped(wanted)}'"
            )


def keep_clustering(spark: SparkSession, dataset: Dataset, path: Path) -> None:
    """Cluster by the declared columns: overwriting a table makes Delta forget them."""
    from deltalake import DeltaTable as LogReader

    table = LogReader(str(path))
    clustered = "clustering" in (table.protocol().writer_features or [])
    if not (clustered or dataset.cluster_columns):
        return
    stored = spark.sql(f"DESCRIBE DETAIL delta.`{path}`").select("clusteringColumns").collect()[0][0]
    wanted = list(dataset.cluster_columns)
    if [name.lower() for name in stored] != [name.lower() for name in wanted]:
        columns = ", ".join(quoted(name) for name in wanted)
        spark.sql(f"ALTER TABLE delta.`{path}` CLUSTER BY {f'({columns})' if wanted else 'NONE'}")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
