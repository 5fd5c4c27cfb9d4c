"""A column whose name a table can't have as it is, as ``unit price``, comes to a table that was made without one."""

from __future__ import annotations

from dataclasses import replace

from headwater.delta_log.table_history import table_exists
from headwater_spark.delta_writes.column_mapping import MAPPING, map_columns
from headwater_spark.execution.failures import causes_of_error
from headwater_spark.execution.flow_run import FlowRun
from headwater_spark.execution.restarts import Start
from headwater_spark.messages.known_exceptions import SPECIAL_NAME, shows


def take_special_names(run: FlowRun, failure: Exception, start: Start) -> Start | None:
    """Give the table column mapping, as a table has it that is made for such a name, and start again.

    A declaration that says how columns are mapped is left as it is.
    """
    table = run.delta_table
    if (
        table is None
        or MAPPING in run.dataset.table_properties
        or not shows(causes_of_error(failure), SPECIAL_NAME)
    ):
        return None
    if not table_exists(table) or not map_columns(run.context.spark, table):
        return None
    reason = (
        f"{run.name} starts again: its table has column mapping now, for a column whose name files can't have"
    )
    return replace(start, seconds=0.0, reason=reason)
