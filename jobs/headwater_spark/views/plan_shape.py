"""What of a query's plan stands against ever refreshing its view incrementally, in Lakeflow's names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from headwater.incremental.techniques import Issue, IssueType, Technique
from headwater_spark.plans.plan_walk import CURRENT_TIME, TEXT_TO_TIME, is_special_time
from headwater_spark.views.plan_description import PASSING, SET_OPERATIONS, Expr, Node, is_distinct

_LEAVES = {"LogicalRelation", "LocalRelation", "Range", "OneRowRelation"}
_ALLOWED = {
    *_LEAVES,
    *PASSING,
    *SET_OPERATIONS,
    "Project",
    "Filter",
    "Aggregate",
    "Join",
    "Union",
    "Generate",
    "LateralJoin",
    "Expand",
    "Window",
    "Distinct",
    "Deduplicate",
}
_CHANCE = {
    "Rand", "Randn", "RandStr", "Uniform", "Uuid", "Shuffle", "MonotonicallyIncreasingID", "SparkPartitionID",
    "InputFileName", "InputFileBlockStart", "InputFileBlockLength", "CurrentUser", "First", "Last", "AnyValue",
    "CollectList", "CollectSet", "Mode", "ListAgg", "ApproximatePercentile", "ApproxTopK", "CountMinSketchAgg",
    "HllSketchAgg", "HllUnionAgg", "HistogramNumeric", "ApproxTopKAccumulate", "ApproxTopKCombine",
    "KllSketchAggBigint", "KllSketchAggFloat", "KllSketchAggDouble", "KllMergeAggBigint", "KllMergeAggFloat",
    "KllMergeAggDouble", "ThetaSketchAgg", "ThetaUnionAgg", "ThetaIntersectionAgg", "TupleSketchAggInteger",
    "TupleSketchAggDouble", "TupleUnionAggInteger", "TupleUnionAggDouble", "TupleIntersectionAggInteger",
    "TupleIntersectionAggDouble",
}  # fmt: skip
# Where SQL's name is another one than the class's in small letters.
_SQL_NAMES = {"ApproximatePercentile": "percentile_approx", "ListAgg": "listagg"}
# What is the same in whatever order values were collected.
_ORDERING = {"SortArray", "ArraySort", "ArraySize", "Size", "ArrayMax", "ArrayMin", "ArrayContains"}
_COLLECTS = {"CollectList", "CollectSet"}
# What a window's ORDER BY makes sure of.
_BY_ORDER = {"First", "Last", "CollectList"}
_ORDERED = "a window with ORDER BY"
# What a column has to be that the changed part of a view is found by.
_CAN_NAME = "can name its changed part (a text, a whole or decimal number, a boolean, a date or a time)"
_PYTHON = {"PythonUDF", "PythonUDAF", "PythonUDTF"}
# The hidden column that says in which file a row lies.
FILE_METADATA = "_metadata"


def shape_issues(root: Node, undetermined: Collection[str] = ()) -> list[Issue]:
    """Why a query can't be refreshed incrementally, whatever its sources do; empty where it may be.

    Args:
        undetermined: the classes of expressions that Spark itself says give another result each time.
    """
    issues = [*_operators(root), *_expressions(root)]
    for plan in root.subquery_plans:
        issues += [*_operators(plan), *_expressions(plan)]
    # These are judged by where they stand.
    other = sorted(set(undetermined) - _COLLECTS - _BY_ORDER)
    if other and not any(issue.kind is IssueType.PLAN_NOT_DETERMINISTIC for issue in issues):
        issues.append(_chance(other[0]))
    return list({issue.reason: issue for issue in issues}.values())


def anchor(root: Node) -> Technique:
    """The technique that recomputes the parts of a view that changed: by the topmost operator that makes groups of rows."""
    node = root
    while node.kind in PASSING or node.kind in ("Project", "Filter"):
        node = node.children[0]
    if node.kind == "Aggregate" or is_distinct(node) or node.kind in SET_OPERATIONS:
        return Technique.GENERIC_AGGREGATE
    return Technique.WINDOW_FUNCTION if node.kind == "Window" else Technique.ROW_BASED


def not_traceable(root: Node, *, several_reads: bool = False) -> Issue:
    """Why no column of a result can say which part of it changed.

    Args:
        several_reads: one could, if the tables were not read several times each.
    """

    def because(sub_type: str, reason: str, operator: str | None = None) -> Issue:
        return Issue(
            IssueType.PLAN_NOT_INCREMENTALIZABLE, reason, sub_type=sub_type, operator=operator, lasting=True
        )

    if several_reads:
        return because(
            "OPERATOR_NOT_SUPPORTED",
            "each table is read several times, and no column of the result says for all reads of one which rows a changed row is in",
            "Join",
        )
    if any(node.kind == "Aggregate" for node in root.walk()):
        return because(
            "AGGREGATE_NOT_TOP_NODE",
            f"no column of the result that {_CAN_NAME} is a key of each aggregation and each window that changed rows go through",
            "Aggregate",
        )
    if any(node.kind == "Window" for node in root.walk()):
        return because(
            "OPERATOR_NOT_SUPPORTED",
            f"no column of the result that {_CAN_NAME} is in the PARTITION BY of each window that changed rows go through",
            "Window",
        )
    return because(
        "OPERATOR_NOT_SUPPORTED", "no column of the result says which rows of it a changed row is in"
    )


def _operators(root: Node) -> Iterator[Issue]:
    for node in root.walk():
        if node.kind == "CollectMetrics":
            reason = "it reads a view that has expectations, which count over all rows"
            yield Issue(IssueType.EXPECTATIONS_NOT_SUPPORTED, reason, operator=node.kind, lasting=True)
        elif node.kind not in _ALLOWED or (node.kind == "Union" and node.fields.get("byName") is True):
            yield _operator(node.kind)
        elif node.kind == "LogicalRelation" and reads_file_metadata(node):
            yield Issue(
                IssueType.PLAN_NOT_DETERMINISTIC,
                f"{FILE_METADATA} says in which file a row lies, which changes without the row",
                "NON_DETERMINISTIC_EXPRESSION",
                expression=FILE_METADATA,
                lasting=True,
            )
        elif node.kind == "Deduplicate" and not is_distinct(node):
            reason = "which of several rows with the same keys stays is left to chance"
            yield Issue(
                IssueType.PLAN_NOT_DETERMINISTIC,
                reason,
                "NON_DETERMINISTIC_EXPRESSION",
                node.kind,
                lasting=True,
            )
        elif node.kind == "Window" and not node.exprs("partitionSpec"):
            yield Issue(
                IssueType.PLAN_NOT_INCREMENTALIZABLE,
                "a window has no PARTITION BY, so that each row depends on all others",
                "WINDOW_FUNCTION_WITHOUT_PARTITION_BY",
                node.kind,
                lasting=True,
            )


def reads_file_metadata(leaf: Node) -> bool:
    """Whether the query reads in which files the rows of a table lie."""
    return any(column.name == FILE_METADATA for column in leaf.exprs("output"))


_IN_PYTHON = "Python code makes these rows, and does not say from which others"
# What operators are in a query, and why changed rows can't be followed through them.
_IN_WORDS = {
    **dict.fromkeys(("GlobalLimit", "LocalLimit", "Offset", "Tail"), "with LIMIT or OFFSET, whether a row stays depends on all others"),
    "Sample": "which rows a sample picks depends on where they lie",
    **dict.fromkeys(("UnionLoop", "UnionLoopRef"), "each round of a recursive query reads the rows of the one before"),
    "LogicalRDD": "rows that Python made (createDataFrame, an RDD) have no versions that could be compared",
    **dict.fromkeys(
        ("MapInPandas", "MapInArrow", "FlatMapGroupsInPandas", "FlatMapGroupsInArrow", "FlatMapCoGroupsInPandas", "FlatMapCoGroupsInArrow"),
        _IN_PYTHON,
    ),
}  # fmt: skip


def _operator(kind: str) -> Issue:
    return Issue(
        IssueType.PLAN_NOT_INCREMENTALIZABLE,
        _IN_WORDS.get(kind, f"changed rows can't be followed through the query's operator {kind}"),
        "OPERATOR_NOT_SUPPORTED",
        kind,
        lasting=True,
    )


def _expressions(root: Node) -> Iterator[Issue]:
    for node in root.walk():
        for expression in node.expressions:
            yield from _expression(expression, None)


def _expression(one: Expr, parents: tuple[str, ...] | None) -> Iterator[Issue]:
    above = parents or ()
    if one.kind in CURRENT_TIME:
        yield Issue(
            IssueType.PLAN_NOT_DETERMINISTIC,
            f"{_in_sql(one.kind)} gives another result at another time",
            "TIME_FUNCTION",
            expression=one.kind,
            lasting=True,
        )
    elif (text := _special_time(one)) is not None:
        yield Issue(
            IssueType.PLAN_NOT_DETERMINISTIC,
            f"the text '{text}' as a date or a time means another one each time",
            "TIME_FUNCTION",
            expression=one.kind,
            lasting=True,
        )
    elif one.kind in _CHANCE and not (
        (one.kind in _COLLECTS and set(above[-2:]) & _ORDERING)
        or (one.kind in _BY_ORDER and above[-2:-1] == (_ORDERED,))
        or (one.kind == "ListAgg" and one.has("SortOrder"))
        # Of several values that are as frequent, an order says which one.
        or (one.kind == "Mode" and one.fields.get("reverseOpt") is not None)
    ):
        yield _chance(one.kind)
    elif one.kind in _PYTHON and one.fields.get("udfDeterministic") is not True:
        # A function that makes rows is none by default.
        state = (
            "not declared as deterministic" if one.kind == "PythonUDTF" else "declared as not deterministic"
        )
        yield Issue(
            IssueType.PLAN_NOT_DETERMINISTIC,
            f"the Python function {one.name} is {state}",
            "USER_DEFINED_FUNCTION",
            expression=one.name,
            lasting=True,
        )
    kind = _ORDERED if _is_ordered_window(one) else one.kind
    for child in one.children:
        yield from _expression(child, (*above, kind))


def _special_time(one: Expr) -> str | None:
    """The text that an expression makes the time of the run of, None where there is none."""
    is_time = one.kind != "Cast" or str(one.fields.get("dataType", "")).startswith(("date", "timestamp"))
    if one.kind not in TEXT_TO_TIME or not is_time:
        return None
    texts = (str(child.fields.get("value")) for child in one.children if child.kind == "Literal")
    return next((text for text in texts if is_special_time(text)), None)


def _is_ordered_window(one: Expr) -> bool:
    return one.kind == "WindowExpression" and any(
        part.kind == "SortOrder" for spec in one.children[1:] for part in spec.children
    )


def _in_sql(kind: str) -> str:
    """An expression's class as SQL calls it."""
    return _SQL_NAMES.get(kind) or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind).lower()


def _chance(kind: str) -> Issue:
    return Issue(
        IssueType.PLAN_NOT_DETERMINISTIC,
        f"{_in_sql(kind)} may give another result from the same rows",
        "NON_DETERMINISTIC_EXPRESSION",
        expression=kind,
        lasting=True,
    )
