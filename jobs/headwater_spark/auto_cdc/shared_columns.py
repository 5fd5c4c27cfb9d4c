"""Flows of changes into one type 1 target that give it different columns: each sets its own, and the others keep their values.

Decision 0177.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from headwater_spark.auto_cdc.change_columns import ChangeColumns


def same_columns(columns: ChangeColumns, other: ChangeColumns) -> bool:
    """Whether two flows give the target the same columns; order and letter case do not matter."""
    return _lowered(columns.names) == _lowered(other.names)


def united(flows: Mapping[str, ChangeColumns]) -> dict[str, ChangeColumns]:
    """The flows with all columns of their target, where they give it different ones; else as they are.

    Each then names the columns that its events set, as with ``columns_to_update``, so that the result does not depend on the
    order of arrival across flows either.
    """
    columns = list(flows.values())
    if not columns or all(same_columns(columns[0], other) for other in columns[1:]):
        return dict(flows)
    fields: dict[str, StructField] = {}
    for each in columns:
        for field in each.fields:
            fields.setdefault(field.name.lower(), field)
    ignored = {name.lower() for each in columns for name in each.ignored}

    def spelled(name: str) -> str:
        # As the first flow that has it spells it.
        return fields[name.lower()].name

    return {
        name: replace(
            each,
            keys=tuple(map(spelled, each.keys)),
            sequence_column=None if each.sequence_column is None else spelled(each.sequence_column),
            fields=tuple(fields.values()),
            # By the target's columns, whichever flow brings them: a struct is decided field by field, or as a whole.
            ignored=tuple(field.name for field in fields.values() if field.name.lower() in ignored),
            selected=_selected(each),
        )
        for name, each in flows.items()
    }


def _selected(columns: ChangeColumns) -> Column:
    own = F.array(*(F.lit(name.lower()) for name in columns.names))
    if columns.selected is None:
        return own
    return F.when(columns.selected.isNull(), own).otherwise(F.array_intersect(columns.selected, own))


def _lowered(names: list[str]) -> list[str]:
    return sorted(name.lower() for name in names)
