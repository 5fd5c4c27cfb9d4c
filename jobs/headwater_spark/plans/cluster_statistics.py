"""The ranges that Delta keeps of the columns that a table is clustered by: without them it refuses to create the table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from pyspark.sql.types import StructType

from headwater.definitions.dataset import Dataset
from headwater.delta_log.table_history import table_exists
from headwater.errors import UnsupportedArgument
from headwater.storage.place import Place

_NAMED, _COUNTED = "dataSkippingStatsColumns", "dataSkippingNumIndexedCols"
_DEFAULT = "spark.databricks.delta.properties.defaults."
_FIRST = "32"
# A name between commas or points; inside backticks it may have either.
_COLUMN = re.compile(r"(?:`(?:[^`]|``)*`|[^,`])+")
_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")
_Path = tuple[str, ...]


def check_cluster_statistics(
    dataset: Dataset,
    schema: StructType,
    setting: Callable[[str], str | None],
    table_path: Callable[[Dataset], Place],
) -> None:
    """Check that Delta keeps ranges of all columns of ``cluster_by``, where the table is still to be made.

    A table that is there may have properties that others gave it, and another order of its columns.

    Args:
        dataset: the table.
        schema: its columns.
        setting: a setting of the session by its name.
        table_path: where a dataset's table is.

    Raises:
        UnsupportedArgument: it keeps none of one of them.
    """
    leaves = [_lowered(path) for path in _leaves(schema)]
    for name in dataset.cluster_columns:
        path = (name.lower(),) if (name.lower(),) in leaves else tuple(name.lower().split("."))
        without = _without(dataset, path, leaves, setting) if path in leaves else None
        if without is not None and not table_exists(table_path(dataset)):
            place = leaves.index(path) + 1
            raise UnsupportedArgument(
                f"{dataset.name!r} is to be clustered by {name!r}, and Delta would keep no range of its values for each file: {without}.",
                where=dataset.location,
                remedy=f"Add it to the table property delta.{_NAMED}."
                if without.startswith("delta")
                else f"Have the query return it further to the front (it is number {place}, fields of structs counted one by one), or set "
                f'the table property delta.{_COUNTED} to "{place}".',
            )


def _without(
    dataset: Dataset, path: _Path, leaves: list[_Path], setting: Callable[[str], str | None]
) -> str | None:
    """Why a column has no ranges; None where it has."""
    named = _property(dataset, _NAMED, setting)
    if named is not None:
        listed = [_parts(column) for column in _COLUMN.findall(named)]
        covered = any(path[: len(one)] == one for one in listed)
        return None if covered else f"delta.{_NAMED} does not name it"
    first = _property(dataset, _COUNTED, setting) or _FIRST
    if not first.strip().isdigit() or leaves.index(path) < int(first):  # -1: of all columns
        return None
    return f"it does so for the first {int(first)} columns only"


def _property(dataset: Dataset, name: str, setting: Callable[[str], str | None]) -> str | None:
    properties = {key.lower(): value for key, value in dataset.table_properties.items()}
    value = properties.get(f"delta.{name}".lower())
    return value or dataset.spark_conf.get(_DEFAULT + name) or setting(_DEFAULT + name)


def _leaves(schema: StructType) -> Iterator[_Path]:
    """The columns as Delta counts them: a struct by its fields."""
    for field in schema.fields:
        if isinstance(field.dataType, StructType):
            yield from ((field.name, *inner) for inner in _leaves(field.dataType))
        else:
            yield (field.name,)


def _parts(column: str) -> _Path:
    parts = _PART.findall(column.strip())
    return tuple((quoted.replace("``", "`") or plain).lower() for quoted, plain in parts)


def _lowered(path: _Path) -> _Path:
    return tuple(part.lower() for part in path)
