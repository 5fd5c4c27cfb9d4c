"""Tables as the declarations want them: made, kept up with comments and properties, emptied for a full refresh."""

from __future__ import annotations

from pathlib import Path

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headwater.checkpoints.table_history import table_exists
from headwater.definitions.dataset import Dataset
from headwater_spark.schemas import needs_column_mapping


def table_id(path: Path) -> str | None:
    """The id that Delta gave the table when it was created, None where there is none."""
    from deltalake import DeltaTable as LogReader

    if not table_exists(path):
        return None
    return str(LogReader(str(path)).metadata().id)


def create_table(spark: SparkSession, dataset: Dataset, path: Path, schema: StructType) -> None:
    """Make the table where there is none; an existing one is left as it is."""
    builder = DeltaTable.createIfNotExists(spark).location(str(path)).addColumns(schema)
    if dataset.comment:
        builder = builder.comment(dataset.comment)
    mapping = {"delta.columnMapping.mode": "name"} if needs_column_mapping(schema) else {}
    for key, value in {**mapping, **dataset.table_properties}.items():
        builder = builder.property(key, value)
    if dataset.partition_columns:
        builder = builder.partitionedBy(*dataset.partition_columns)
    if dataset.cluster_columns:
        builder = builder.clusterBy(*dataset.cluster_columns)
    builder.execute()


def needs_creating_first(dataset: Dataset, flows: int, schema: StructType) -> bool:
    """Whether the first write can't make the table as declared (it can when there is nothing to declare)."""
    declared = dataset.comment or dataset.table_properties or dataset.cluster_columns
    return bool(declared or flows > 1 or needs_column_mapping(schema))


def keep_up(spark: SparkSession, dataset: Dataset, path: Path) -> None:
    """Bring an existing table's comment and properties up to the declaration; commits only what differs."""
    from deltalake import DeltaTable as LogReader

    if not (dataset.table_properties or dataset.comment):
        return
    metadata = LogReader(str(path)).metadata()
    changed = {k: v for k, v in dataset.table_properties.items() if metadata.configuration.get(k) != v}
    if changed:
        pairs = ", ".join(f"'{_quoted(k)}' = '{_quoted(v)}'" for k, v in changed.items())
        spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ({pairs})")
    if dataset.comment and metadata.description != dataset.comment:
        spark.sql(f"COMMENT ON TABLE delta.`{path}` IS '{_quoted(dataset.comment)}'")


def empty_table(
    spark: SparkSession, dataset: Dataset, path: Path, schema: StructType, user_metadata: str
) -> None:
    """Take all rows out in one commit, and give the table the schema of the declaration."""
    if not table_exists(path):
        return
    writer = spark.createDataFrame([], schema).write.format("delta").mode("overwrite")
    writer = writer.option("overwriteSchema", "true").option("userMetadata", user_metadata)
    if dataset.partition_columns:
        writer = writer.partitionBy(*dataset.partition_columns)
    writer.save(str(path))


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
