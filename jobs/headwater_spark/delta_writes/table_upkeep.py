"""Apply a changed declaration to an existing table: comments, properties, clustering; refuse what can't be changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headwater.definitions.dataset import Dataset, DatasetKind
from headwater.delta_log.conditions import log_unreadable
from headwater.errors import FlowFailed
from headwater.storage.delta_tables import delta_table
from headwater.storage.place import Place
from headwater_spark.delta_writes.tables import (
    DECLARED,
    columns_of,
    declared_making,
    declared_names,
    made_by,
    reshape_table,
)
from headwater_spark.plans.names import column_path, quoted

if TYPE_CHECKING:
    from deltalake import DeltaTable as LogReader

_DELTAS = "delta."
_FEATURE = "delta.feature."
# The features that a writer's version brings, where the protocol does not list them (from 7 on it does).
_BROUGHT_BY = {
    "appendonly": 2, "invariants": 2, "checkconstraints": 3, "changedatafeed": 4, "generatedcolumns": 4, "columnmapping": 5,
    "identitycolumns": 6,
}  # fmt: skip


def apply_declaration(
    spark: SparkSession, dataset: Dataset, kind: DatasetKind, path: Place, schema: StructType | None
) -> None:
    """Commit only what differs.

    Args:
        kind: of the resolved dataset: a materialized view may change its shape, a streaming table may not.
        schema: the declared schema, if any.

    Raises:
        FlowFailed: the declaration changes the partitioning, or what kind a column is: that takes a full refresh.
        SourceUnreachable: the table's log can't be read, or a catalog owns its commits.
    """
    table = _opened(path)
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
            remedy=f"Refill it with --full-refresh {dataset.name}, or restore the declaration.",
        )
    _properties(spark, table, dataset, path)
    if schema is not None:
        _column_comments(spark, table, schema, path)
    keep_clustering(spark, dataset, path)


def _opened(path: Place) -> LogReader:
    from deltalake.exceptions import DeltaError

    try:
        return delta_table(path)
    except DeltaError as error:
        raise log_unreadable(error, path) from None


def _shape_change(table: LogReader, dataset: Dataset, schema: StructType | None) -> str | None:
    partitions = list(table.metadata().partition_columns)
    if [name.lower() for name in partitions] != [name.lower() for name in dataset.partition_columns]:
        return f"partition_cols={list(dataset.partition_columns)} (so far {partitions})"
    columns = columns_of(table)
    for field in schema.fields if schema else ():
        stored = columns.get(field.name.lower())
        generated = declared_making(field)
        if stored is None:
            if generated or not field.nullable:
                return f"a new column {field.name} that is NOT NULL or computed"
            continue
        if made_by(stored) != generated:
            return f"another way to compute the column {field.name}"
        if stored.nullable != field.nullable:
            return f"the column {field.name} is {'NULL' if field.nullable else 'NOT NULL'}"
    return None


def _other_columns(table: LogReader, schema: StructType) -> str | None:
    """A change that overwriting the rows alone would not make."""
    stored = {name: field.dataType for name, field in columns_of(table).items()}
    declared = {field.name.lower(): field.dataType for field in schema.fields}
    return "other columns" if stored != declared else None


def _properties(spark: SparkSession, table: LogReader, dataset: Dataset, path: Place) -> None:
    metadata = table.metadata()
    stored: dict[str, Any] = dict(metadata.configuration)
    previous = json.loads(stored.get(DECLARED) or "[]")
    declared = dict(dataset.table_properties)
    if declared or dataset.comment or previous:
        declared[DECLARED] = declared_names(dataset)
    names = {key.lower() if key.lower().startswith(_DELTAS) else key: key for key in stored}
    changed = {
        key: value
        for key, value in declared.items()
        if stored.get(_stored_name(key, names)) != value and not _in_protocol(table, key, value)
    }
    if changed:
        pairs = ", ".join(f"'{_escaped(k)}' = '{_escaped(v)}'" for k, v in changed.items())
        spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ({pairs})")
    removed = [
        _stored_name(key, names)
        for key in previous
        if key != "comment" and key not in declared and _stored_name(key, names) in stored
    ]
    if removed:
        keys = ", ".join(f"'{_escaped(key)}'" for key in removed)
        spark.sql(f"ALTER TABLE delta.`{path}` UNSET TBLPROPERTIES IF EXISTS ({keys})")
    if dataset.comment and metadata.description != dataset.comment:
        spark.sql(f"COMMENT ON TABLE delta.`{path}` IS '{_escaped(dataset.comment)}'")
    if not dataset.comment and "comment" in previous and metadata.description:
        spark.sql(f"COMMENT ON TABLE delta.`{path}` IS NULL")


def _stored_name(key: str, names: Mapping[str, str]) -> str:
    """The name under which Delta has stored a property: it writes its own in one spelling. ``names``: those that are stored."""
    return names.get(key.lower() if key.lower().startswith(_DELTAS) else key, key)


def _in_protocol(table: LogReader, key: str, value: str) -> bool:
    """Whether a property asks for what the table's protocol has; Delta stores no such property."""
    protocol, name = table.protocol(), key.lower()
    if name.startswith(_FEATURE):
        features = [*(protocol.reader_features or []), *(protocol.writer_features or [])]
        feature, version = name.removeprefix(_FEATURE), protocol.min_writer_version
        return feature in map(str.lower, features) or _BROUGHT_BY.get(feature, 7) <= version < 7
    versions = {
        "delta.minreaderversion": protocol.min_reader_version,
        "delta.minwriterversion": protocol.min_writer_version,
    }
    return name in versions and value.strip().isdigit() and versions[name] >= int(value)


def _column_comments(spark: SparkSession, table: LogReader, schema: StructType, path: Place) -> None:
    columns = columns_of(table)
    for field in schema.fields:
        stored = columns.get(field.name.lower())
        comment = field.metadata.get("comment", "")
        if stored is not None and stored.metadata.get("comment", "") != comment:
            column = f"ALTER COLUMN {quoted(field.name)} COMMENT '{_escaped(comment)}'"
            spark.sql(f"ALTER TABLE delta.`{path}` {column}")


def keep_clustering(spark: SparkSession, dataset: Dataset, path: Place) -> None:
    """Cluster by the declared columns again: overwriting a table drops its clustering."""
    table = delta_table(path)
    clustered = "clustering" in (table.protocol().writer_features or [])
    if not (clustered or dataset.cluster_columns):
        return
    stored = spark.sql(f"DESCRIBE DETAIL delta.`{path}`").select("clusteringColumns").collect()[0][0]
    if list(map(_plain, stored)) != list(map(_plain, dataset.cluster_columns)):
        known = columns_of(table)
        columns = ", ".join(column_path(name, known) for name in dataset.cluster_columns)
        spark.sql(f"ALTER TABLE delta.`{path}` CLUSTER BY {f'({columns})' if columns else 'NONE'}")


def _plain(name: str) -> str:
    return name.replace("`", "").lower()


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
