"""The columns by which a table is partitioned or clustered: what Delta would refuse at the first write is refused before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    MapType,
    StructField,
    StructType,
    VariantType,
)

from headwater.definitions.dataset import Dataset
from headwater.errors import UnsupportedArgument
from headwater.suggestions import did_you_mean, nearest

# Delta's own limit, and the types of which it keeps no least and greatest value for each file.
_MOST_CLUSTER_COLUMNS = 4
_WITHOUT_RANGES = (BinaryType, BooleanType, ArrayType, MapType, StructType, VariantType)
_NO_PARTITIONS = (ArrayType, MapType, StructType, VariantType)


def check_layout(dataset: Dataset, fields: Mapping[str, StructField]) -> None:
    """Check ``partition_cols`` and ``cluster_by`` against the table's columns, by their names in lower case.

    Raises:
        UnsupportedArgument: Delta could not lay the table out so.
    """
    if not fields:  # of a table that has no flows yet
        return
    _check_names(dataset, "partition_cols", dataset.partition_columns, fields)
    _check_names(dataset, "cluster_by", dataset.cluster_columns, fields)
    _check_partitions(dataset, fields)
    _check_clusters(dataset, fields)


def _check_names(
    dataset: Dataset, argument: str, names: Sequence[str], fields: Mapping[str, StructField]
) -> None:
    # A table may be clustered by a field of a struct, named as outer.inner; Delta looks for what is inside.
    missing = [name for name in names if not {name.lower(), name.lower().partition(".")[0]} & set(fields)]
    if missing:
        there = ", ".join(field.name for field in fields.values())
        raise UnsupportedArgument(
            f"{argument} of {dataset.name!r} names {', '.join(map(repr, missing))}, and its columns are: {there}.",
            where=dataset.location,
            remedy=did_you_mean(
                nearest(missing[0].lower(), fields),
                "Name a column of the table. Where it is one of files that are still to come, give their reader a schema.",
            ),
        )
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise UnsupportedArgument(
                f"{argument} of {dataset.name!r} names the column {name!r} twice.",
                where=dataset.location,
                remedy="Name each column once; letter case makes no difference.",
            )
        seen.add(name.lower())


def _check_partitions(dataset: Dataset, fields: Mapping[str, StructField]) -> None:
    partitions = [name.lower() for name in dataset.partition_columns]
    if partitions and set(partitions) == set(fields):
        raise UnsupportedArgument(
            f"{dataset.name!r} is to be partitioned by all of its columns: no column would be left in its files.",
            where=dataset.location,
            remedy="Leave one of them out of partition_cols, or use cluster_by.",
        )
    for name in dataset.partition_columns:
        kind = _type_of(name, fields)
        if isinstance(kind, BinaryType):
            raise UnsupportedArgument(
                f"{dataset.name!r} is to be partitioned by {name!r}, which is binary: Delta keeps partitions as text, where most bytes come "
                "back as others, and a row with a key is not met again.",
                where=dataset.location,
                remedy=f"Partition it by F.hex({name!r}) as a column of its own.",
            )
        if isinstance(kind, _NO_PARTITIONS):
            raise UnsupportedArgument(
                f"{dataset.name!r} is to be partitioned by {name!r}, which is {kind.simpleString()}: Delta has no such partitions.",
                where=dataset.location,
                remedy="Partition it by a column with one plain value in each row.",
            )


def _check_clusters(dataset: Dataset, fields: Mapping[str, StructField]) -> None:
    names = dataset.cluster_columns
    if len(names) > _MOST_CLUSTER_COLUMNS:
        raise UnsupportedArgument(
            f"{dataset.name!r} is to be clustered by {len(names)} columns: Delta takes {_MOST_CLUSTER_COLUMNS}.",
            where=dataset.location,
            remedy="Keep those of cluster_by that most queries filter by.",
        )
    for name in names:
        kind = _type_of(name, fields)
        if isinstance(kind, _WITHOUT_RANGES):
            raise UnsupportedArgument(
                f"{dataset.name!r} is to be clustered by {name!r}, which is {kind.simpleString()}: Delta keeps no range of such values for "
                "each file.",
                where=dataset.location,
                remedy="Cluster it by a number, a text, a date or a timestamp; of a struct by one of its fields: outer.inner.",
            )


def _type_of(name: str, fields: Mapping[str, StructField]) -> DataType | None:
    """The type of a column; None for a field of a struct, which Delta looks for itself."""
    field = fields.get(name.lower())
    return None if field is None else field.dataType
