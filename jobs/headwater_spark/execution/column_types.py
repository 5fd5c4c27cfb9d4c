"""Whether a table's columns hold what a stream's query gives now.

Delta's streaming sink casts rows to the types of the table without a word: 3.75 becomes 3 where the column was made an INT, and a
MERGE does the same.
"""

from __future__ import annotations

from pyspark.sql.types import (
    AtomicType,
    DateType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from headwater.definitions.change_conditions import ColumnTypeChanged
from headwater.definitions.output_kind import OutputKind
from headwater.delta_log.table_history import table_exists
from headwater.storage.delta_tables import delta_table
from headwater_spark.auto_cdc.column_types import TYPE_WIDENING, fitted_type, holds
from headwater_spark.delta_writes.tables import columns_of
from headwater_spark.execution.flow_run import FlowRun

# Change events are fitted to their target batch by batch; a running aggregate without keys replaces all of its table.
_FITTED_ELSEWHERE = (OutputKind.CHANGES, OutputKind.COMPLETE)


def check_column_types(run: FlowRun, schema: StructType) -> None:
    """Raise ColumnTypeChanged for the first column whose values the table's column could lose a part of.

    Args:
        schema: the columns of the flow's query.
    """
    table = run.delta_table
    if table is None or run.mode.kind in _FITTED_ELSEWHERE or not table_exists(table):
        return
    opened = delta_table(table)
    stored = columns_of(opened)
    widens = opened.metadata().configuration.get(TYPE_WIDENING, "false").lower() == "true"
    for field in schema.fields:
        column = stored.get(field.name.lower())
        if column is not None and not _takes(column, field, widens=widens):
            raise _refused(run, column, field)


def _takes(column: StructField, field: StructField, *, widens: bool) -> bool:
    current, new = column.dataType, field.dataType
    if holds(current, new) or (widens and fitted_type(current, new) is not None):
        return True
    if isinstance(current, StringType):
        return isinstance(new, AtomicType)
    return isinstance(current, TimestampType | TimestampNTZType) and isinstance(new, DateType)


def _refused(run: FlowRun, column: StructField, field: StructField) -> ColumnTypeChanged:
    current, new = column.dataType.simpleString(), field.dataType.simpleString()
    wider = fitted_type(column.dataType, field.dataType) is not None
    widen = (
        f'give the table table_properties={{"{TYPE_WIDENING}": "true"}}, and its column widens; or '
        if wider
        else ""
    )
    return ColumnTypeChanged(
        f"The column {field.name!r} of {run.dataset.name!r} is {current}, and {run.name!r} now gives {new}: values would be cut to fit. "
        "Nothing was written.",
        where=run.flow.location,
        remedy=f'Cast it in the query, F.col("{field.name}").cast("{current}"); or {widen}refill the table: headwater run PIPELINE_DIR '
        f"--full-refresh {run.dataset.name}",
    )
