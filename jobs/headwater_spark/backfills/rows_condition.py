"""A backfill's condition, checked against the columns of its table."""

from __future__ import annotations

from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headwater.backfills.backfill_range import BackfillRange
from headwater.backfills.conditions import InvalidRange
from headwater.definitions.dataset import Dataset
from headwater_spark.messages.source_errors import describe
from headwater_spark.plans.plan_walk import asks_the_clock, has_subquery, items
from headwater_spark.plans.schema_text import GENERATED


def rows_condition(
    session: SparkSession, chosen: BackfillRange, columns: StructType, dataset: Dataset
) -> str:
    """The condition, to be put into other SQL text over the table's columns.

    It is applied to the rows that leave and to those that come, perhaps on another day again: so it has to mean the same each time.

    Raises:
        InvalidRange: it does not fit the table's columns, reaches beyond the row, or depends on the clock or on chance.
    """
    condition = _analysed(session, chosen, columns, dataset)
    generated = {field.name for field in columns.fields if (field.metadata or {}).get(GENERATED)}
    named = {str(attribute.name()) for attribute in items(condition.references().toSeq())} & generated
    reason = ""
    if has_subquery(condition):
        reason = "has a subquery"
    elif asks_the_clock(condition):
        reason = "gives other rows at another time: write the day, and not current_date()"
    elif named:
        reason = (
            f"names {', '.join(sorted(named))}, which Delta makes: write the expression that it is made by"
        )
    if reason:
        raise InvalidRange(f"The condition {chosen.condition!r} {reason}.", where=dataset.location)
    # As it was written: Spark's own text of an expression can't always be parsed, that of a lambda for one. It may end in a comment.
    return f"({chosen.condition}\n)"


def _analysed(session: SparkSession, chosen: BackfillRange, columns: StructType, dataset: Dataset) -> Any:
    # Over bare columns: the text must not name a table.
    bare = session.createDataFrame([], columns)
    try:
        plan = bare.where(F.expr(chosen.condition or ""))._jdf.queryExecution().analyzed()  # noqa: SLF001 - no public face
    except (AnalysisException, ParseException) as error:
        raise InvalidRange(
            f"Spark can't take the condition {chosen.condition!r}: {describe(error).partition(': ')[2]}",
            where=dataset.location,
            remedy=f"Write a condition over columns of {dataset.name!r}: {', '.join(columns.names)}.",
        ) from None
    return items(plan.expressions().toSeq())[0]
