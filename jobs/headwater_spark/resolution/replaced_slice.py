"""The part of a table that each update replaces (Lakeflow's REPLACE WHERE flows): a condition over its columns."""

from __future__ import annotations

from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headwater.definitions.flow import Flow
from headwater.errors import NotADataFrame, QueryFailed
from headwater_spark.messages.source_errors import describe
from headwater_spark.plans.plan_walk import class_name, expression_nodes, items

_REMEDY = (
    'Write a condition over columns that the query returns, as replace_where="day >= current_date() - 7".'
)


def in_slice(frame: DataFrame, flow: Flow) -> DataFrame:
    """The rows of the flow's query that belong to its part of the table.

    Raises:
        NotADataFrame: the query is a stream.
        QueryFailed: the condition does not fit the query's columns, reaches beyond the row, or depends on chance.
    """
    _check(frame, flow)
    return frame.where(_as_column(flow.replace_where))


def slice_condition(frame: DataFrame, flow: Flow) -> str:
    """The condition as SQL text, for Delta."""
    return str(_condition(frame, flow).sql())


def _check(frame: DataFrame, flow: Flow) -> None:
    if frame.isStreaming:
        raise NotADataFrame(
            f"{flow.name!r}: replace_where recomputes a part of the table, and the function returned a streaming DataFrame.",
            where=flow.location,
            remedy="Read with spark.read or dp.read, or leave replace_where out.",
        )
    condition = _condition(frame, flow)
    parts = list(expression_nodes(condition))
    subqueries = any(class_name(part).endswith("Subquery") or "Exists" in class_name(part) for part in parts)
    if subqueries or not condition.deterministic():
        reason = "has a subquery" if subqueries else "depends on chance"
        raise QueryFailed(
            f"{flow.name!r}: the condition in replace_where {reason}: it has to mean the same for the rows that leave "
            "and for those that come.",
            where=flow.location,
            remedy=_REMEDY,
        )


def _condition(frame: DataFrame, flow: Flow) -> Any:
    # Over bare columns: the text must not name the tables that the query reads.
    bare = frame.sparkSession.createDataFrame([], frame.schema)
    try:
        plan = bare.where(_as_column(flow.replace_where))._jdf.queryExecution().analyzed()  # noqa: SLF001
    except (AnalysisException, ParseException) as error:
        raise QueryFailed(
            f"{flow.name!r}: Spark can't take replace_where={flow.replace_where!s}: {describe(error).partition(': ')[2]}",
            where=flow.location,
            remedy=_REMEDY,
        ) from None
    expressions = items(plan.expressions().toSeq())
    return expressions[0]


def _as_column(condition: Any) -> Column:
    return condition if isinstance(condition, Column) else F.expr(str(condition))
