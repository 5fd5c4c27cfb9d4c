"""``headwater events --sql`` only reads: changes of a table, a file or a setting are refused before anything runs."""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import is_instance_of
from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from headwater.event_log.conditions import NotAQuery
from headwater_spark.plans.plan_walk import class_name, plan_nodes, simple_name

_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical"
# What Spark executes at once, what it turns into a command later (INSERT), and scripts, which may have both.
_NO_QUERIES = (f"{_LOGICAL}.Command", f"{_LOGICAL}.ParsedStatement", f"{_LOGICAL}.CompoundPlanStatement")
_VIEW = "org.apache.spark.sql.execution.command.CreateViewCommand"


def check_query(spark: SparkSession, statement: str) -> None:
    """Check that a statement is a query, or makes a temporary view of one; raises NotAQuery, ParseException."""
    parser = spark._jsparkSession.sessionState().sqlParser()  # noqa: SLF001
    plan = parser.parsePlan(statement)
    if class_name(plan) == _VIEW and simple_name(plan.viewType()) == "LocalTempView$":
        reads = not any(_does_something(spark, node) for node in plan_nodes(plan.plan()))
    else:
        reads = _is_query(parser, statement) and not any(
            _does_something(spark, node) for node in plan_nodes(plan)
        )
    if not reads:
        raise NotAQuery(
            "Only queries can be asked, and temporary views made for them; nothing was run.",
            where=statement.strip().partition("\n")[0][:100],
            remedy="Ask with SELECT. Tables are changed by an update, or by `headwater repair`, `backfill` and `drop`.",
        )


def _is_query(parser: Any, statement: str) -> bool:
    """Whether the grammar's rule for queries accepts it. It may stop before the end: the plan is checked, too."""
    try:
        parser.parseQuery(statement)
    except ParseException:
        return False
    return True


def _does_something(spark: SparkSession, node: Any) -> bool:
    gateway = spark.sparkContext._gateway  # noqa: SLF001
    return any(is_instance_of(gateway, node, name) for name in _NO_QUERIES)
