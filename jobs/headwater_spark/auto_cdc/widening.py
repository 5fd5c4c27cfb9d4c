"""Widening the columns of a target and of its side table before a batch that needs it is merged."""

from __future__ import annotations

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType, TimestampNTZType

from headwater.storage.delta_tables import delta_table
from headwater.storage.place import Place
from headwater_spark.auto_cdc.change_columns import ChangeColumns
from headwater_spark.auto_cdc.change_events import row_type
from headwater_spark.auto_cdc.column_types import TYPE_WIDENING, Widened, fit_columns
from headwater_spark.auto_cdc.side_table import SideTable
from headwater_spark.plans.names import quoted


def widen_target(
    spark: SparkSession,
    columns: ChangeColumns,
    table: Place,
    schema: StructType,
    side: SideTable | None,
    where: object,
) -> ChangeColumns | None:
    """Widen the columns of a target that a flow's values do not fit into.

    The side table goes first: after a crash between the two, the next batch still has to widen the target.

    Args:
        schema: the target's columns.
        side: its side table, if it has one.

    Returns:
        The flow's columns with the target's types; None where those already are the flow's own.

    Raises:
        ColumnTypeChanged: a column's type does not fit the target's; nothing was changed.
    """
    fitted = fit_columns(columns, schema, where, widens=lambda: _widens(table))
    if side is not None and fitted.widened:
        side.widen(row_type(fitted.columns))
    _alter(spark, table, fitted.widened)
    return None if fitted.columns.fields == columns.fields and not fitted.widened else fitted.columns


def _alter(spark: SparkSession, table: Place, widened: Widened) -> None:
    # Delta turns this feature on by itself only for a new table; a user who enables type widening wants it.
    if any(isinstance(kind, TimestampNTZType) for _, kind in widened):
        DeltaTable.forPath(spark, str(table)).addFeatureSupport("timestampNtz")
    if widened:  # in one commit: each is a version that readers of the table stop at
        columns = ", ".join(f"{quoted(*path)} TYPE {kind.simpleString()}" for path, kind in widened)
        spark.sql(f"ALTER TABLE delta.{quoted(str(table))} ALTER COLUMN {columns}")


def _widens(table: Place) -> bool:
    configuration = delta_table(table).metadata().configuration
    return configuration.get(TYPE_WIDENING, "false").lower() == "true"
