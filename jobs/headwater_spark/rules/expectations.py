"""Expectations on a frame: the fail filter, one observation of all rules, the drop filter, in this order.

Any other order lets the optimiser silently skip a check: a filter below the fail filter is merged into it and
pushed to the scan, and an unused column that would raise is pruned. The observation is a barrier to both.
A rule is broken where it is false; NULL passes, as in a SQL CHECK.

Decision 0004.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType

from headwater.definitions.expectation import Expectation, ViolationAction
from headwater.errors import InvalidExpectation
from headwater_spark.messages.exception_text import Cause, marked
from headwater_spark.messages.source_errors import describe
from headwater_spark.plans.names import quoted
from headwater_spark.plans.plan_walk import expression_nodes, has_subquery, items, simple_name
from headwater_spark.plans.schemas import orderable
from headwater_spark.rules.exact_counts import use_exact_counts
from headwater_spark.rules.source_records import SOURCE, without_source

COLUMN_PREFIX = "__headwater_"
# Masks of the conditions that a row breaks: one bit each, this many to a column.
_FAILS, _MARKS, _BITS = f"{COLUMN_PREFIX}fails_", f"{COLUMN_PREFIX}breaks_", 62
_VIOLATION = "HEADWATER_EXPECTATION_VIOLATION"
_REACHING_OUT = {
    "reflect", "java_method", "try_reflect", "input_file_name", "input_file_block_start", "input_file_block_length",
    "monotonically_increasing_id", "spark_partition_id", "read_files", "http_request",
}  # fmt: skip
_PYTHON = {"PythonUDF", "PythonUDAF", "PythonUDTF"}


@dataclass(frozen=True)
class RuleCounts:
    """The counts of one expectation."""

    name: str
    passed: int
    failed: int


@dataclass(frozen=True)
class Quality:
    """The counts of a dataset's expectations in one batch: ``rows`` came in, ``dropped`` and ``quarantined`` were kept out.

    ``files``: how many files that can't be read were quarantined; their rows are in no count.
    """

    rows: int
    dropped: int
    rules: tuple[RuleCounts, ...]
    quarantined: int = 0
    files: int = 0

    @property
    def accepted(self) -> int:
        """How many rows are to be written."""
        return self.rows - self.dropped - self.quarantined


def check_expectations(frame: DataFrame, rules: Sequence[Expectation], dataset: str) -> None:
    """Raise InvalidExpectation for the first rule that is not a plain SQL boolean over the frame's columns."""
    if _are_conditions(frame, [rule for rule in rules if rule.unique is None]):
        rules = [rule for rule in rules if rule.unique is not None]
    for rule in rules:
        if rule.unique is None:
            _check_condition(frame, rule, dataset)
        else:
            _check_key(frame, rule, dataset)


def _are_conditions(frame: DataFrame, rules: Sequence[Expectation]) -> bool:
    """Whether all of them pass; Spark analyses a query twice for all, not twice for each. What is wrong is left to one by one."""
    if not rules:
        return True
    try:
        for rule in rules:
            _check_reach(_parsed(frame, rule), rule)
        conditions = [F.expr(rule.constraint) for rule in rules]
        result = frame.select(*[one.alias(f"rule_{index}") for index, one in enumerate(conditions)])
        _check_functions(result, rules[0])
        frame.where(reduce(and_, conditions))
    except (ParseException, AnalysisException, InvalidExpectation):
        return False
    return all(isinstance(field.dataType, BooleanType) for field in result.schema.fields)


def _check_condition(frame: DataFrame, rule: Expectation, dataset: str) -> None:
    try:
        _check_reach(_parsed(frame, rule), rule)
        result = frame.select(F.expr(rule.constraint).alias("rule"))
    except ParseException as error:
        raise _invalid(rule, dataset, "does not parse", error) from None
    except AnalysisException as error:
        raise _invalid(rule, dataset, "does not fit the rows", error) from None
    _check_functions(result, rule)
    if not isinstance(result.schema[0].dataType, BooleanType):
        kind = result.schema[0].dataType.simpleString()
        raise InvalidExpectation(
            f"The expectation {rule.name!r} on {dataset!r} is a {kind}, not a boolean: {rule.constraint}",
            where=rule.location,
            remedy='Write a condition, as "amount > 0".',
        )
    try:
        frame.where(F.expr(rule.constraint))
    except AnalysisException as error:  # an aggregate, a window or a generator
        raise _invalid(rule, dataset, "looks beyond the row", error) from None


def _parsed(frame: DataFrame, rule: Expectation) -> Any:
    parser = frame.sparkSession._jsparkSession.sessionState().sqlParser()  # noqa: SLF001
    return parser.parseExpression(rule.constraint)


def _check_reach(expression: Any, rule: Expectation) -> None:
    functions = {
        str(part.nameParts().apply(part.nameParts().length() - 1)).lower()
        for part in expression_nodes(expression)
        if simple_name(part) == "UnresolvedFunction"
    }
    if has_subquery(expression) or not functions.isdisjoint(_REACHING_OUT):
        raise InvalidExpectation(
            f"The expectation {rule.name!r} reaches outside the row: {rule.constraint}",
            where=rule.location,
            remedy="Join in the query what the rule needs, and write the rule over the joined columns.",
        )


def _check_functions(result: DataFrame, rule: Expectation) -> None:
    """A Python function runs in another process: it can depend on more than the row, and hangs under an observation."""
    plan = result._jdf.queryExecution().analyzed()  # noqa: SLF001 - the plan has no public face in Python
    parts = [part for root in items(plan.expressions().toSeq()) for part in expression_nodes(root)]
    if any(simple_name(part) in _PYTHON for part in parts):
        raise InvalidExpectation(
            f"The expectation {rule.name!r} calls a Python function: {rule.constraint}",
            where=rule.location,
            remedy="Call it in the query, and write the rule over the column that it gives.",
        )


def _check_key(frame: DataFrame, rule: Expectation, dataset: str) -> None:
    assert rule.unique is not None
    types = {field.name.lower(): field.dataType for field in frame.schema.fields}
    for column in rule.unique.columns:
        column_type = types.get(column.lower())
        if column_type is None or not orderable(column_type):
            problem = (
                "does not have"
                if column_type is None
                else f"has as {column_type.simpleString()}, which can't be compared"
            )
            raise InvalidExpectation(
                f"The expectation {rule.name!r} on {dataset!r} names the column {column!r}, which the function's result {problem}.",
                where=rule.location,
                remedy=f"It returns: {', '.join(frame.columns)}.",
            )


def _invalid(rule: Expectation, dataset: str, problem: str, error: Exception) -> InvalidExpectation:
    reason = describe(error).partition(": ")[2]
    return InvalidExpectation(
        f"The expectation {rule.name!r} on {dataset!r} {problem}: {rule.constraint}\n    {reason}",
        where=rule.location,
        remedy="Write a SQL condition over the columns that the function returns.",
    )


def apply_expectations(
    frame: DataFrame, rules: Sequence[Expectation], observation: str | Observation, *, count: bool = False
) -> DataFrame:
    """The frame with its rules applied: without rows that are dropped or quarantined.

    Args:
        frame: may have the source's records (``with_source``), for the message of a rule that fails; the result has not.
        observation: collects the counts (a name, for a stream).
        count: count a stream's rows even without rules.
    """
    if not rules and isinstance(observation, str) and not count:
        return frame
    use_exact_counts(frame.sparkSession)
    marked = mark_conditions(frame, rules)
    dropped = any_broken(rules, ViolationAction.DROP, ViolationAction.QUARANTINE)
    counts = [F.count(F.lit(1)).alias("rows"), F.count_if(dropped).alias("dropped")]
    counts += [F.count_if(broken(rules, index)).alias(f"rule_{index}") for index in range(len(rules))]
    observed = without_source(marked.observe(observation, *counts))
    return observed.where(~dropped).drop(*_masks(rules))


def view_observation(view: str) -> str:
    """The name under which a view's rules are counted in the queries that read it."""
    return f"view_{view}"


def mark_conditions(frame: DataFrame, rules: Sequence[Expectation]) -> DataFrame:
    """The frame with masks that say which conditions a row breaks; a row that breaks a fail rule raises.

    A condition may give another result each time (``rand()``), so it is evaluated once, here, for all uses. With a column for
    each, Spark's optimiser would compare every pair of them.
    """
    masks = _masks(rules)
    failing = {name: indices for name, indices in masks.items() if name.startswith(_FAILS)}
    marked = frame.withColumns({name: _mask(rules, indices) for name, indices in failing.items()})
    if failing:
        marked = marked.where(_or_raise(rules, failing, frame.columns))
    masked = {name: _mask(rules, indices) for name, indices in masks.items() if name not in failing}
    return marked.withColumns(masked) if masked else marked


def unique_mark(index: int) -> str:
    """The column that marks a repeated key, for the rule of this number."""
    return f"{COLUMN_PREFIX}rule_{index}"


def broken(rules: Sequence[Expectation], index: int) -> Column:
    """Whether a marked row breaks the rule of this number."""
    return _any_of(rules, [index])


def any_broken(rules: Sequence[Expectation], *actions: ViolationAction) -> Column:
    """Whether a marked row breaks a rule of these kinds."""
    return _any_of(rules, [index for index, rule in enumerate(rules) if rule.action in actions])


def _masks(rules: Sequence[Expectation]) -> dict[str, list[int]]:
    """The conditions of each mask, by number, in the order of their bits. Those of fail rules come first, separately."""
    conditions = [index for index, rule in enumerate(rules) if rule.unique is None]
    groups = {
        _FAILS: [index for index in conditions if rules[index].action is ViolationAction.FAIL],
        _MARKS: [index for index in conditions if rules[index].action is not ViolationAction.FAIL],
    }
    return {
        f"{name}{start // _BITS}": group[start : start + _BITS]
        for name, group in groups.items()
        for start in range(0, len(group), _BITS)
    }


def _mask(rules: Sequence[Expectation], indices: Sequence[int]) -> Column:
    bits = [
        F.when(F.coalesce(F.expr(rules[index].constraint), F.lit(True)), _bits(0)).otherwise(
            _bits(1 << place)
        )
        for place, index in enumerate(indices)
    ]
    while len(bits) > 1:  # as a tree: a long chain would be too deep
        pairs = zip(bits[::2], [*bits[1::2], None], strict=False)
        bits = [one if other is None else one.bitwiseOR(other) for one, other in pairs]
    return bits[0]


def _any_of(rules: Sequence[Expectation], indices: Sequence[int]) -> Column:
    selected = set(indices)
    conditions = [F.col(unique_mark(index)) for index in indices if rules[index].unique is not None]
    for name, group in _masks(rules).items():
        mask = sum(1 << place for place, index in enumerate(group) if index in selected)
        conditions += [F.col(name).bitwiseAND(_bits(mask)) != _bits(0)] if mask else []
    return reduce(or_, conditions) if conditions else F.lit(False)


def _bits(value: int) -> Column:
    return F.lit(value).cast("bigint")


def _or_raise(
    rules: Sequence[Expectation], masks: Mapping[str, Sequence[int]], columns: Sequence[str]
) -> Column:
    # The filter is pushed below the masks, with their expressions substituted: each occurs twice, no more.
    names = [
        F.filter(F.array(*[F.lit(rules[index].name) for index in indices]), _is_set(F.col(name)))
        for name, indices in masks.items()
    ]
    raised = F.raise_error(violation_text(F.concat(*names), columns)).cast("boolean")
    passes = reduce(and_, [F.col(name) == _bits(0) for name in masks])
    return F.when(passes, F.lit(True)).otherwise(raised)


def _is_set(mask: Column) -> Callable[[Column, Column], Column]:
    return lambda _, place: F.bit_get(mask, place) == F.lit(1)


def violation_text(broken: Column, columns: Sequence[str]) -> Column:
    """What ``find_violation`` reads: the names of the broken rules, the row, and its record at the source where known."""
    record = F.struct(*[F.col(quoted(name)) for name in columns if name != SOURCE])
    parts = [broken.alias("rules"), record.alias("record")]
    parts += [F.col(SOURCE).alias("input")] if SOURCE in columns else []
    return F.concat(F.lit(_VIOLATION), F.to_json(F.struct(*parts), {"ignoreNullFields": "false"}))


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
    """What an ``expect_or_fail`` reported: the rules that the row broke, and the row.

    ``input``: the source's record, None where it is not known.
    """

    rules: tuple[str, ...]
    record: str
    input: str | None = None


def find_violation(causes: Sequence[Cause]) -> Violation | None:
    """Parse the violation from Spark's exception, or None where that has another cause.

    Only where a message begins with the rule's own: a record that quotes one is not a violation.
    """
    text = marked(causes, _VIOLATION)
    if text is None or not text.startswith("{"):
        return None
    data, _ = json.JSONDecoder().raw_decode(text)
    source = data.get("input")
    return Violation(
        tuple(data["rules"]),
        json.dumps(data.get("record", {}), ensure_ascii=False),
        None if source is None else json.dumps(_readable(source), ensure_ascii=False),
    )


def _readable(source: dict[str, Any]) -> dict[str, Any]:
    """A source's record with Kafka's keys and values as text: JSON has these bytes in base64."""
    source_record = source["record"]
    record = dict(json.loads(source_record)) if isinstance(source_record, str) else {**source_record}
    if source.get("topic") is not None:
        for name in ("key", "value"):
            text = record.get(name)
            record[name] = None if text is None else base64.b64decode(text).decode("utf-8", "replace")
        record.pop("headers", None)
    return {**record, **({"file": source["file"]} if source.get("file") else {})}
