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
    # A table may be clustered by a field of a struct, named as outer.inner, and partitioned by whole columns.
    nested = argument == "cluster_by"
    for name in names:
        if _type_of(name, fields) is None or not (nested or name.lower() in fields):
            raise _missing(dataset, argument, name, fields)
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


def _missing(
    dataset: Dataset, argument: str, name: str, fields: Mapping[str, StructField]
) -> UnsupportedArgument:
    struct, level, part = _level(name, fields)
    names = ", ".join(field.name for field in level.values())
    there = f"the fields of {struct!r} are: {names}" if struct else f"its columns are: {names}"
    otherwise = "Name a column of the table. Where it is one of files that are still to come, give their reader a schema."
    near = nearest(part.lower(), level)
    if struct and not level:
        there = f"{struct!r} is no struct"
    elif part.lower() in level:  # a field that is there, to partition by
        there, near = f"{struct!r} is a struct: a table is partitioned by whole columns", None
        otherwise = "Have the query return it as a column of its own, and name that."
    return UnsupportedArgument(
        f"{argument} of {dataset.name!r} names {name!r}, and {there}.",
        where=dataset.location,
        remedy=did_you_mean(f"{struct}.{near}" if struct and near else near, otherwise),
    )


def _type_of(name: str, fields: Mapping[str, StructField]) -> DataType | None:
    """The type of a column, or of a field of a struct; None where it is not there."""
    _, level, part = _level(name, fields)
    field = level.get(part.lower())
    return None if field is None else field.dataType


def _level(name: str, fields: Mapping[str, StructField]) -> tuple[str, Mapping[str, StructField], str]:
    """Where a name leads: the path of a struct, its fields by their names in lower case, and what is looked for there.

    The path is empty for a column of the table itself. The fields are none where the path is that of no struct.
    """
    if name.lower() in fields:  # whatever characters it has
        return "", fields, name
    path, level = "", fields
    part, *inner = name.split(".")
    for following in inner:
        field = level.get(part.lower())
        if field is None:
            break
        path = f"{path}.{field.name}" if path else field.name
        kind = field.dataType
        level = {one.name.lower(): one for one in kind.fields} if isinstance(kind, StructType) else {}
        part = following
    return path, level, part
