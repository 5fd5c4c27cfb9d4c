"""Create tables as they are declared, and empty them for a full refresh."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from delta.tables import DeltaTable, DeltaTableBuilder, IdentityGenerator
from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from headwater.definitions.dataset import Dataset
from headwater.delta_log.table_history import table_exists
from headwater.errors import FlowFailed
from headwater.storage.delta_tables import delta_table
from headwater.storage.object_path import ObjectPath
from headwater.storage.place import Place
from headwater.storage.walking import is_there_for_hadoop, remove_tree
from headwater_spark.delta_writes.column_mapping import BY_NAME
from headwater_spark.java_classes import java_class
from headwater_spark.plans.names import column_path
from headwater_spark.plans.schema_text import GENERATED, IDENTITY
from headwater_spark.plans.schemas import needs_column_mapping

if TYPE_CHECKING:
    from deltalake import DeltaTable as LogReader

# What the declaration set on the table, so that a later update can remove it: a JSON list of property names, and "comment".
DECLARED = "headwater.declared"
# Where Delta stores the expression of a computed column.
EXPRESSION = "delta.generationExpression"


def remove_empty_logs(spark: SparkSession, *paths: Place | None) -> None:
    """Remove logs without a commit: a driver died while it created the table, and Delta would refuse to create it there."""
    for path in paths:
        if path is None or table_exists(path):
            continue
        log = path / "_delta_log"
        if not isinstance(log, ObjectPath):
            if log.is_dir():
                remove_tree(log)
        elif is_there_for_hadoop(log):
            _remove_with_marks(spark, log)


def _remove_with_marks(spark: SparkSession, folder: ObjectPath) -> None:
    """Remove a folder by Hadoop: the keys of its marks end with a slash, and our client knows no such keys."""
    # Hadoop's file systems have no public face in Python.
    conf = spark._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001
    marked = java_class(spark._jvm, "org.apache.hadoop.fs.Path")(str(folder))  # noqa: SLF001
    marked.getFileSystem(conf).delete(marked, True)


def create_table(spark: SparkSession, dataset: Dataset, path: Place, schema: StructType) -> None:
    """Create the table unless it exists; an existing one is not changed."""
    _declared(DeltaTable.createIfNotExists(spark), dataset, path, schema).execute()


def declared_names(dataset: Dataset) -> str:
    """The value of the property that lists what the declaration sets."""
    return json.dumps(sorted([*dataset.table_properties, *(["comment"] if dataset.comment else [])]))


def needs_creating_first(dataset: Dataset, flows: int, schema: StructType) -> bool:
    """Whether the table must be created before its first write (not if there is nothing to declare)."""
    declared = (
        dataset.comment or dataset.table_properties or dataset.cluster_columns or dataset.schema is not None
    )
    return bool(declared or flows > 1 or needs_column_mapping(schema))


def empty_table(
    spark: SparkSession, dataset: Dataset, path: Place, schema: StructType, user_metadata: str
) -> None:
    """Delete all rows in one commit, and give the table the declared schema."""
    if not table_exists(path):
        return
    if dataset.schema is not None and has_shape(path, dataset, schema):
        delete_rows(spark, path, user_metadata)
    else:
        reshape_table(spark, dataset, path, schema, user_metadata)


def delete_rows(spark: SparkSession, path: Place, user_metadata: str) -> None:
    """Delete all rows of a Delta table in one commit."""
    session = spark.newSession()  # the metadata of the commit is a setting
    session.conf.set("spark.databricks.delta.commitInfo.userMetadata", user_metadata)
    session.sql(f"DELETE FROM delta.`{path}`")  # noqa: S608 - a folder of the pipeline's own


def reshape_table(
    spark: SparkSession, dataset: Dataset, path: Place, schema: StructType, user_metadata: str
) -> None:
    """Replace all rows by none, in one commit, with the declared columns and partitions.

    Raises:
        FlowFailed: a column is declared NOT NULL, which Delta allows only for a new table.
    """
    numbered = next((field.name for field in schema.fields if IDENTITY in (field.metadata or {})), None)
    required = numbered or next((field.name for field in schema.fields if not field.nullable), None)
    if required is not None and dataset.schema is not None:
        what = "an identity" if numbered else "NOT NULL"
        raise FlowFailed(
            f"The table {dataset.name!r} exists with another shape, and Delta can't make its column {required!r} {what}.",
            where=dataset.location,
            remedy=f"Remove the table's folder ({path}) and run --full-refresh {dataset.name}, or use expect_or_fail.",
        )
    fields = [StructField(f.name, f.dataType, f.nullable, _stored_metadata(f)) for f in schema.fields]
    writer = spark.createDataFrame([], StructType(fields)).write.format("delta").mode("overwrite")
    writer = writer.option("overwriteSchema", "true").option("userMetadata", user_metadata)
    if dataset.partition_columns:
        writer = writer.partitionBy(*dataset.partition_columns)
    writer.save(str(path))


def has_shape(path: Place, dataset: Dataset, schema: StructType) -> bool:
    """Whether the table has these columns, nullable and computed as declared, and the declared partitions."""
    table = delta_table(path)
    stored = {n: (f.dataType, f.nullable, made_by(f)) for n, f in columns_of(table).items()}
    declared = {f.name.lower(): (f.dataType, f.nullable, declared_making(f)) for f in schema.fields}
    partitions = [name.lower() for name in table.metadata().partition_columns]
    return stored == declared and partitions == [name.lower() for name in dataset.partition_columns]


def made_by(field: StructField) -> object:
    """How a table's column is made where its rows do not bring it: an expression, or its numbers; None where they do."""
    if (expression := field.metadata.get(EXPRESSION)) is not None:
        return expression
    if "delta.identity.start" not in field.metadata:
        return None
    names = ("start", "step", "allowExplicitInsert")
    return tuple(field.metadata.get(f"delta.identity.{name}") for name in names)


def declared_making(field: StructField) -> object:
    """The same of a declared column."""
    metadata = field.metadata or {}
    numbers = metadata.get(IDENTITY)
    return (
        metadata.get(GENERATED) if numbers is None else (numbers["start"], numbers["step"], numbers["given"])
    )


def columns_of(table: LogReader) -> dict[str, StructField]:
    """A Delta table's columns by lower-case name, as its log has them."""
    stored = StructType.fromJson(json.loads(table.schema().to_json()))
    return {field.name.lower(): field for field in stored.fields}


def _stored_metadata(field: StructField) -> dict[str, Any]:
    plain = {key: value for key, value in (field.metadata or {}).items() if key != GENERATED}
    return {**plain, EXPRESSION: field.metadata[GENERATED]} if GENERATED in field.metadata else plain


def _making(field: StructField) -> dict[str, Any]:
    numbers = field.metadata.get(IDENTITY)
    if numbers is None:
        return {"generatedAlwaysAs": field.metadata.get(GENERATED)}
    generator = IdentityGenerator(numbers["start"], numbers["step"])
    return {"generatedByDefaultAs" if numbers["given"] else "generatedAlwaysAs": generator}


def _declared(
    builder: DeltaTableBuilder, dataset: Dataset, path: Place, schema: StructType
) -> DeltaTableBuilder:
    builder = builder.location(str(path))
    # What a query happens never to give as NULL is no promise, and Delta refuses it within arrays and maps.
    types = (schema if dataset.schema is not None else schema.toNullable()).fields
    for field, kind in zip(schema.fields, types, strict=True):
        builder = builder.addColumn(
            field.name,
            kind.dataType,
            nullable=field.nullable,
            **_making(field),
            comment=field.metadata.get("comment"),
        )
    if dataset.comment:
        builder = builder.comment(dataset.comment)
    mapping = BY_NAME if needs_column_mapping(schema) else {}
    for key, value in {**mapping, **dataset.table_properties}.items():
        builder = builder.property(key, value)
    if dataset.comment or dataset.table_properties:
        builder = builder.property(DECLARED, declared_names(dataset))
    if dataset.partition_columns:
        builder = builder.partitionedBy(*dataset.partition_columns)
    if dataset.cluster_columns:
        columns = {field.name.lower() for field in schema.fields}
        builder = builder.clusterBy(*(column_path(name, columns) for name in dataset.cluster_columns))
    return builder
