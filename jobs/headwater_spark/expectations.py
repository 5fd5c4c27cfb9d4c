"""Expectations on a frame: the fail filter, one observation of all rules, the drop filter, in this order.

Any other order lets the optimiser skip a check without a word: a filter below the fail filter is merged into it and
pushed to the scan, and an unused column that would raise is pruned. The observation is a barrier to both.
A rule is broken where it is false; NULL passes, as in a SQL CHECK.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType

from headwater.definitions.expectation import Expectation, ViolationAction
from headwater.errors import InvalidExpectation
from headwater_spark.facade.plan_walk import class_name, expression_nodes
from headwater_spark.loader.source_errors import describe

_VIOLATION = "HEADWATER_EXPECTATION_VIOLATION"
_REACHING_OUT = {"reflect", "java_method", "try_reflect", "input_file_name", "read_files", "http_request"}


@dataclass(frozen=True)
class RuleCounts:
    """What one rule saw."""

    name: str
    passed: int
    failed: int


@dataclass(frozen=True)
class Quality:
    """What the rules of a dataset saw in one batch: ``rows`` came in, ``dropped`` were kept out."""

    rows: int
    dropped: int
    rules: tuple[RuleCounts, ...]


def check_expectations(frame: DataFrame, rules: Sequence[Expectation], dataset: str) -> None:
    """Raise InvalidExpectation for the first rule that is not a plain SQL boolean over the frame's columns."""
    for rule in rules:
        try:
            parser = frame.sparkSession._jsparkSession.sessionState().sqlParser()  # noqa: SLF001
            expression = parser.parseExpression(rule.constraint)
            _check_reach(expression, rule)
            result = frame.select(F.expr(rule.constraint).alias("rule"))
        except ParseException as error:
            raise _invalid(rule, dataset, "does not parse", error) from None
        except AnalysisException as error:
            raise _invalid(rule, dataset, "does not fit the rows", error) from None
        if not isinstance(result.schema[0].dataType, BooleanType):
            kind = result.schema[0].dataType.simpleString()
            raise InvalidExpectation(
                f"The expectation {rule.name!r} on {dataset!r} is a {kind}, not a boolean: {rule.constraint}",
                where=rule.location,
                remedy='Write a condition, as "amount > 0".',
            )
        try:
            frame.where(F.expr(rule.constraint))
        except AnalysisException as error:  # an aggregate, a window or a generator: nothing of one row
            raise _invalid(rule, dataset, "looks beyond the row", error) from None


def _check_reach(expression: Any, rule: Expectation) -> None:
    for part in expression_nodes(expression):
        name = class_name(part).rpartition(".")[2]
        called = (
            str(part.nameParts().apply(part.nameParts().length() - 1)).lower()
            if name == "UnresolvedFunction"
            else ""
        )
        if (
            name.endswith("Subquery")
            or name in ("Exists", "ListQuery", "InSubquery")
            or called in _REACHING_OUT
        ):
            raise InvalidExpectation(
                f"The expectation {rule.name!r} reaches outside the row: {rule.constraint}",
                where=rule.location,
                remedy="Join in the query what the rule needs, and write the rule over the joined columns.",
            )


def _invalid(rule: Expectation, dataset: str, how: str, error: Exception) -> InvalidExpectation:
    reason = describe(error).partition(": ")[2]
    return InvalidExpectation(
        f"The expectation {rule.name!r} on {dataset!r} {how}: {rule.constraint}\n    {reason}",
        where=rule.location,
        remedy="Write a SQL condition over the columns that the function returns.",
    )


def apply_expectations(
    frame: DataFrame, rules: Sequence[Expectation], observation: str | Observation, *, count: bool = False
) -> DataFrame:
    """The frame with its rules applied.

    Args:
        observation: where the counts are kept (a name, for a stream).
        count: count a stream's rows though it has no rules.
    """
    if not rules and isinstance(observation, str) and not count:
        return frame
    failing = [rule for rule in rules if rule.action is ViolationAction.FAIL]
    dropping = [rule for rule in rules if rule.action is ViolationAction.DROP]
    if failing:
        frame = frame.where(_or_raise(failing))
    counts = [F.count(F.lit(1)).alias("rows"), F.count_if(~_all_hold(dropping)).alias("dropped")]
    counts += [F.count_if(~_holds(rule)).alias(f"rule_{index}") for index, rule in enumerate(rules)]
    frame = frame.observe(observation, *counts)
    return frame.where(_all_hold(dropping)) if dropping else frame


def _holds(rule: Expectation) -> Column:
    return F.coalesce(F.expr(rule.constraint), F.lit(True))


def _all_hold(rules: Sequence[Expectation]) -> Column:
    result = F.lit(True)
    for rule in rules:
        result = result & _holds(rule)
    return result


def _or_raise(rules: Sequence[Expectation]) -> Column:
    broken = F.array_compact(F.array(*[F.when(~_holds(rule), F.lit(rule.name)) for rule in rules]))
    message = F.concat(
        F.lit(_VIOLATION), F.to_json(F.struct(broken.alias("rules"), F.struct("*").alias("record")))
    )
    return F.when(_all_hold(rules), F.lit(True)).otherwise(F.raise_error(message).cast("boolean"))


def read_quality(metrics: Mapping[str, Any], rules: Sequence[Expectation]) -> Quality:
    """The observed metrics of one batch as counts."""
    rows = int(metrics["rows"] or 0)
    failed = [int(metrics[f"rule_{index}"] or 0) for index in range(len(rules))]
    counts = tuple(
        RuleCounts(rule.name, rows - broken, broken) for rule, broken in zip(rules, failed, strict=True)
    )
    return Quality(rows, int(metrics["dropped"] or 0), counts)


@dataclass(frozen=True)
class Violation:
    """What an ``expect_or_fail`` reported: the rules that the row broke, and the row."""

    rules: tuple[str, ...]
    record: str


def find_violation(message: str) -> Violation | None:
    """Read the violation out of Spark's error text, or None where it speaks of something else."""
    match = re.search(_VIOLATION + r"(\{.*\})", message, re.DOTALL)
    if match is None:
        return None
    data, _ = json.JSONDecoder().raw_decode(match[1])
    return Violation(tuple(data["rules"]), json.dumps(data.get("record", {}), ensure_ascii=False))
