"""A schema given as DDL text, with what a plain StructType can't express: columns that Delta computes."""

from __future__ import annotations

import json
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from headwater.definitions.source_location import SourceLocation
from headwater.errors import UnsupportedArgument
from headwater_spark.messages.source_errors import describe
from headwater_spark.plans.plan_walk import items, simple_name

# The field's metadata that holds the expression of a computed column, or how the table numbers its rows in it.
GENERATED = "headwater.generatedAs"
IDENTITY = "headwater.identity"


def parse_schema(spark: SparkSession, text: str, where: SourceLocation | None) -> StructType:
    """Read the columns of a CREATE TABLE statement: types, NOT NULL, COMMENT, GENERATED ALWAYS AS (expression) or AS IDENTITY.

    Raises:
        UnsupportedArgument: where it does not parse, or uses what open Delta can't do in a table that streams fill.
    """
    parser = spark._jsparkSession.sessionState().sqlParser()  # noqa: SLF001 - the parser has no public face in Python
    try:
        plan = parser.parsePlan(f"CREATE TABLE t (\n{text}\n) USING delta")
    except PySparkException as error:
        raise UnsupportedArgument(
            f"schema does not parse: {describe(error)}",
            where=where,
            remedy="Write it as \"id INT NOT NULL, name STRING COMMENT 'who'\".",
        ) from None
    if simple_name(plan) != "CreateTable" or not plan.tableSpec().constraints().isEmpty():
        raise UnsupportedArgument(
            "schema has more in it than columns.",
            where=where,
            remedy="Leave keys and constraints out; use expectations, or NOT NULL on a column.",
        )
    return StructType([_field(column, where) for column in items(plan.columns())])


def _field(column: Any, where: SourceLocation | None) -> StructField:
    name = str(column.name())
    if column.defaultValue().isDefined():
        raise UnsupportedArgument(
            f"schema: the column {name!r} has DEFAULT, which a flow's rows would not take part in.",
            where=where,
            remedy="Compute the value in the query.",
        )
    comment, generated = column.comment(), column.generationExpression()
    metadata: dict[str, Any] = {"comment": str(comment.get())} if comment.isDefined() else {}
    if generated.isDefined():
        metadata[GENERATED] = str(generated.get())
    if column.identityColumnSpec().isDefined():
        metadata[IDENTITY] = _identity(column.identityColumnSpec().get())
    kind = StructType.fromJson(
        {"type": "struct", "fields": [{"name": name, "type": json.loads(str(column.dataType().json())), "nullable": True, "metadata": {}}]}
    )  # fmt: skip
    return StructField(name, kind.fields[0].dataType, bool(column.nullable()), metadata)


def _identity(spec: Any) -> dict[str, Any]:
    return {
        "start": int(spec.getStart()),
        "step": int(spec.getStep()),
        "given": bool(spec.isAllowExplicitInsert()),
    }
