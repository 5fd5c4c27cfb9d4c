"""What of a plan stands against incremental refreshes, in Lakeflow's names."""

from __future__ import annotations

import cProfile
import json
from typing import Any

import pytest
from tests.unit.headwater_spark.views import plans as p

from headwater.incremental.techniques import IssueType, Technique
from headwater_spark.views.eligibility import leaf_techniques, never_incremental
from headwater_spark.views.plan_description import Expr, Node, is_distinct, read_plan
from headwater_spark.views.plan_shape import anchor, shape_issues
from headwater_spark.views.used_columns import used_columns

SALES, STORES = p.leaf(1, 2, 3), p.leaf(11, 12)
COUNTED = p.named(p.aggregate("Count", 3), 90)
COLLECT = p.aggregate("CollectSet", 3)
UNDETERMINED = IssueType.PLAN_NOT_DETERMINISTIC


def selecting(*parts: Expr) -> Node:
    """A query that selects an expression."""
    return p.project(SALES, *(p.named(part, 80 + place) for place, part in enumerate(parts)))


def windowed(function: Expr, *, ordered: bool = False) -> Node:
    """A query with a window, by the first column."""
    order = (Expr("SortOrder", {}, (p.column(2),)),) if ordered else ()
    inner = (
        function if function.kind == "AggregateExpression" else Expr("AggregateExpression", {}, (function,))
    )
    made = Expr("WindowExpression", {}, (inner, Expr("WindowSpecDefinition", {}, (p.column(1), *order))))
    return Node(
        "Window", 0, {"windowExpressions": (p.named(made, 90),), "partitionSpec": (p.column(1),)}, (SALES,)
    )


# rank() OVER (PARTITION BY c1 ORDER BY first(c3)): the window orders its rows, not those that `first` looks at.
ORDERED_BY_CHANCE = Node(
    "Window",
    0,
    {
        "windowExpressions": (
            p.named(
                Expr(
                    "WindowExpression",
                    {},
                    (
                        Expr("Rank"),
                        Expr(
                            "WindowSpecDefinition",
                            {},
                            (p.column(1), Expr("SortOrder", {}, (p.aggregate("First", 3),))),
                        ),
                    ),
                ),
                90,
            ),
        ),
        "partitionSpec": (p.column(1),),
    },
    (SALES,),
)


@pytest.mark.parametrize(
    ("query", "kind", "sub_type"),
    [
        (Node("GlobalLimit", 0, {}, (SALES,)), IssueType.PLAN_NOT_INCREMENTALIZABLE, "OPERATOR_NOT_SUPPORTED"),
        (Node("Sample", 0, {}, (SALES,)), IssueType.PLAN_NOT_INCREMENTALIZABLE, "OPERATOR_NOT_SUPPORTED"),
        (Node("LogicalRelation", 0, {"output": (Expr("AttributeReference", {"name": "_metadata", "exprId": {"id": 9}}),)}), UNDETERMINED, "NON_DETERMINISTIC_EXPRESSION"),
        (windowed(Expr("First", {}, (p.column(3),))), UNDETERMINED, "NON_DETERMINISTIC_EXPRESSION"),
        (windowed(COLLECT, ordered=True), UNDETERMINED, "NON_DETERMINISTIC_EXPRESSION"),
        (Node("Union", 0, {"byName": True}, (SALES,)), IssueType.PLAN_NOT_INCREMENTALIZABLE, "OPERATOR_NOT_SUPPORTED"),
        (Node("LogicalRDD"), IssueType.PLAN_NOT_INCREMENTALIZABLE, "OPERATOR_NOT_SUPPORTED"),
        (Node("CollectMetrics", 0, {}, (SALES,)), IssueType.EXPECTATIONS_NOT_SUPPORTED, None),
        (Node("Window", 0, {}, (SALES,)), IssueType.PLAN_NOT_INCREMENTALIZABLE, "WINDOW_FUNCTION_WITHOUT_PARTITION_BY"),
        (Node("Deduplicate", 0, {"keys": (p.column(1),)}, (SALES,)), UNDETERMINED, "NON_DETERMINISTIC_EXPRESSION"),
        (selecting(Expr("Cast", {}, (Expr("CurrentDate"),))), UNDETERMINED, "TIME_FUNCTION"),
        (selecting(Expr("Cast", {"dataType": "date"}, (Expr("Literal", {"value": "today"}),))), UNDETERMINED, "TIME_FUNCTION"),
        (selecting(Expr("Cast", {"dataType": "timestamp_ntz"}, (Expr("Literal", {"value": " Now "}),))), UNDETERMINED, "TIME_FUNCTION"),
        (selecting(Expr("ParseToDate", {}, (Expr("Literal", {"value": "yesterday"}),))), UNDETERMINED, "TIME_FUNCTION"),
        (selecting(Expr("ListAgg", {}, (p.column(3), Expr("Literal")))), UNDETERMINED, "NON_DETERMINISTIC_EXPRESSION"),
        (selecting(Expr("Mode", {}, (p.column(3),))), UNDETERMINED, "NON_DETERMINISTIC_EXPRESSION"),
        (selecting(Expr("KllSketchAggBigint", {}, (p.column(3),))), UNDETERMINED, "NON_DETERMINISTIC_EXPRESSION"),
        (selecting(Expr("Rand")), UNDETERMINED, "NON_DETERMINISTIC_EXPRESSION"),
        (p.group(SALES, (1,), p.column(1), p.named(COLLECT, 90)), UNDETERMINED, "NON_DETERMINISTIC_EXPRESSION"),
        (selecting(Expr("PythonUDF", {"name": "f", "udfDeterministic": False})), UNDETERMINED, "USER_DEFINED_FUNCTION"),
        (selecting(Expr("PythonUDF", {"name": "f"})), UNDETERMINED, "USER_DEFINED_FUNCTION"),
        (ORDERED_BY_CHANCE, UNDETERMINED, "NON_DETERMINISTIC_EXPRESSION"),
        (selecting(Expr("ScalarSubquery", {}, (), (Node("LocalLimit", 0, {}, (STORES,)),))), IssueType.PLAN_NOT_INCREMENTALIZABLE, "OPERATOR_NOT_SUPPORTED"),
    ],
)  # fmt: skip
def test_what_is_never_incremental(query: Node, kind: IssueType, sub_type: str | None):
    """Operators and expressions that are not known to be safe, subqueries' included, each by its name."""
    (issue,) = shape_issues(p.numbered(query))
    assert (issue.kind, issue.sub_type) == (kind, sub_type)
    assert issue.lasting


def test_a_function_that_makes_rows_is_named():
    """Where it stands in a LATERAL subquery, too, which Spark calls not deterministic by a name of its own."""
    made = {"generator": Expr("PythonUDTF", {"name": "parts", "udfDeterministic": False})}
    lateral = Expr("LateralSubquery", {}, (), (Node("Generate", 0, made, (Node("OneRowRelation"),)),))
    query = p.numbered(Node("LateralJoin", 0, {"right": lateral}, (SALES,)))
    (issue,) = shape_issues(query, {"LateralSubquery"})
    assert issue.reason == "the Python function parts is not declared as deterministic"


@pytest.mark.parametrize(
    "query",
    [
        p.join(SALES, STORES, "LeftOuter", p.equal(2, 11)),
        p.group(SALES, (1,), p.column(1), p.named(Expr("SortArray", {}, (COLLECT,)), 90)),
        selecting(Expr("PythonUDF", {"name": "f", "udfDeterministic": True})),
        selecting(Expr("Cast", {"dataType": "string"}, (Expr("Literal", {"value": "today"}),))),
        selecting(Expr("Cast", {"dataType": "date"}, (Expr("Literal", {"value": "2026-01-31"}),))),
        Node("Deduplicate", 0, {"keys": tuple(map(p.column, (1, 2, 3)))}, (SALES,)),
        p.window(SALES, 1, 90),
        windowed(Expr("First", {}, (p.column(3),)), ordered=True),
        windowed(Expr("CollectList", {}, (p.column(3),)), ordered=True),
        p.group(SALES, (1,), p.column(1), p.named(Expr("ArraySort", {}, (COLLECT,)), 90)),
        p.group(SALES, (1,), p.column(1), p.named(p.aggregate("HyperLogLogPlusPlus", 3), 90)),
        selecting(Expr("ListAgg", {}, (p.column(3), Expr("Literal"), Expr("SortOrder", {}, (p.column(3),))))),
        selecting(Expr("Mode", {"reverseOpt": False}, (p.column(3),))),
        Node("RepartitionByExpression", 0, {"partitionExpressions": (p.column(1),)}, (SALES,)),
    ],
)
def test_what_may_be(query: Node):
    """A collection that is sorted, a function that is not declared otherwise, a distinct or a repartition in DataFrame code."""
    assert shape_issues(p.numbered(query)) == []


def test_what_spark_calls_undetermined():
    """An expression that no list has, and Spark calls not deterministic, is one; collections are judged by the list."""
    assert [issue.kind for issue in shape_issues(SALES, {"NewFunction"})] == [UNDETERMINED]
    assert shape_issues(SALES, {"CollectSet", "Last"}) == []


@pytest.mark.parametrize(
    ("kind", "name"),
    [("CollectList", "collect_list"), ("ApproximatePercentile", "percentile_approx"), ("MonotonicallyIncreasingID", "monotonically_increasing_id")],
)  # fmt: skip
def test_functions_are_named_as_in_sql(kind: str, name: str):
    """Who reads the reason knows the name that is in the query, not the class of the engine."""
    (issue,) = shape_issues(p.numbered(selecting(Expr(kind, {}, (p.column(3),)))))
    assert issue.reason.startswith(f"{name} may give")
    assert issue.expression == kind


@pytest.mark.parametrize(
    ("query", "technique"),
    [
        (p.where(SALES, p.above(1, 1)), Technique.ROW_BASED),
        (p.where(p.group(SALES, (1,), p.column(1), COUNTED), p.above(90, 1)), Technique.GENERIC_AGGREGATE),
        (p.distinct(SALES), Technique.GENERIC_AGGREGATE),
        (p.project(p.window(SALES, 1, 90), p.column(1)), Technique.WINDOW_FUNCTION),
    ],
)
def test_the_name_of_recomputing_a_part(query: Node, technique: Technique):
    """By the topmost operator that makes groups of rows."""
    assert anchor(query) is technique


def test_techniques_by_source():
    """What each source allows, and by which columns its changes are found; types that are not keys are left out."""
    root = p.numbered(
        p.project(p.join(SALES, STORES, "LeftOuter", p.equal(2, 11)), p.column(1), p.column(12))
    )
    sales, stores = leaf_techniques(root, ["bigint", "string"])
    assert (sales.grown, sales.changed, sales.columns) == (Technique.APPEND_ONLY, Technique.ROW_BASED, (0, 1))
    assert (stores.grown, stores.changed, stores.columns) == (
        Technique.ROW_BASED,
        Technique.ROW_BASED,
        (0, 1),
    )
    assert never_incremental(root, ["bigint", "string"], ()) == []
    (only,) = leaf_techniques(p.numbered(p.group(SALES, (1,), p.column(1), COUNTED)), ["double", "bigint"])
    assert (only.grown, only.changed) == (None, None)


@pytest.mark.parametrize(
    ("kind", "grown"),
    [
        ("bigint", Technique.GROUP_AGGREGATE),
        ("decimal(38,6)", Technique.GROUP_AGGREGATE),
        ("decimal(37,18)", Technique.GROUP_AGGREGATE),
        ("decimal(38,10)", None),
        ("double", None),
    ],
)
def test_sums_that_are_merged(kind: str, grown: Technique | None):
    """Only where adding two of them is exact: of a decimal with 38 digits, Spark would round the last ones away."""
    (only,) = leaf_techniques(
        p.numbered(p.group(SALES, (1,), p.column(1), p.named(p.aggregate("Sum", 3), 90))), ["int", kind]
    )
    assert only.grown is (grown or Technique.GENERIC_AGGREGATE)


@pytest.mark.parametrize(
    ("query", "types", "names"),
    [
        (
            p.group(SALES, (), p.named(p.aggregate("Average", 3), 90)),
            ["double"],
            "PLAN_NOT_INCREMENTALIZABLE (AGGREGATE_NOT_TOP_NODE)",
        ),
        (
            p.join(p.group(SALES, (1,), p.column(1)), STORES, "FullOuter", p.above(1, 1)),
            ["int"] * 3,
            "PLAN_NOT_INCREMENTALIZABLE (AGGREGATE_NOT_TOP_NODE)",
        ),
        (
            p.join(SALES, STORES, "FullOuter", p.above(1, 1)),
            ["int"] * 5,
            "PLAN_NOT_INCREMENTALIZABLE (OPERATOR_NOT_SUPPORTED)",
        ),
        (Node("Range", 0, {"output": (p.column(1),)}), ["int"], "INPUT_NOT_IN_DELTA"),
        (Node("Sample", 0, {}, (SALES,)), ["int"], "PLAN_NOT_INCREMENTALIZABLE (OPERATOR_NOT_SUPPORTED)"),
    ],
)
def test_policies_that_can_not_be_kept(query: Node, types: list[str], names: str):
    """A view without any column that says where it changed, or without a table below it, is recomputed for good."""
    assert [issue.name for issue in never_incremental(p.numbered(query), types, ())] == [names]


PAIRS = p.join(SALES, STORES, "Inner", p.above(1, 1))


@pytest.mark.parametrize(
    ("tables", "names"),
    [
        (["a", "b"], []),
        (["a", "a"], ["PLAN_NOT_INCREMENTALIZABLE (OPERATOR_NOT_SUPPORTED)"]),
        (["a"], []),
        ([], ["INPUT_NOT_IN_DELTA"]),
    ],
)
def test_what_is_read(tables: list[str], names: list[str]):
    """What changes of a table changes in all its reads: one that no column follows in all of them is never followed; nor is a file."""
    root = p.numbered(PAIRS)
    places = dict(zip((leaf.number for leaf in root.leaves), tables, strict=False))
    types = ["int"] * len(root.output)
    assert [issue.name for issue in never_incremental(root, types, (), places)] == names


@pytest.mark.parametrize(
    ("query", "types", "reason"),
    [
        (p.group(SALES, (1,), p.column(1)), ["double"], "no column of the result that can name its changed part (a text,"),
        (p.project(p.window(SALES, 1, 90), p.column(2), p.column(90)), ["int", "bigint"], "is in the PARTITION BY of each window"),
    ],
)  # fmt: skip
def test_why_no_column_says_it(query: Node, types: list[str], reason: str):
    """A key that is a float is in the result, and can't be one of those; of a window its PARTITION BY is spoken of."""
    (issue,) = never_incremental(p.numbered(query), types, ())
    assert reason in issue.reason


def test_used_columns():
    """Columns that are carried along and dropped again are not used; those of conditions and keys are."""
    joined = p.project(p.join(SALES, STORES, "Inner", p.equal(2, 11)), *map(p.column, (1, 2, 3, 11, 12)))
    root = p.numbered(p.project(p.where(joined, p.above(1, 0)), p.column(12)))
    sales, stores = root.leaves
    assert used_columns(root) == {sales.number: {1, 2}, stores.number: {11, 12}}
    grouped = p.numbered(p.project(p.group(SALES, (1, 2), p.column(1), COUNTED), p.column(1)))
    assert used_columns(grouped)[grouped.leaves[0].number] == {1, 2}
    both = p.numbered(p.project(p.union(p.project(SALES, p.column(1), p.column(3)), STORES), p.column(1)))
    assert [used_columns(both)[leaf.number] for leaf in both.leaves] == [{1}, {11}]


# -- the JSON that Spark gives ---------------------------------------------------------------------------------------

ATTRIBUTE = "org.apache.spark.sql.catalyst.expressions.AttributeReference"
LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."


def attribute(number: int, name: str = "a") -> list[dict[str, Any]]:
    """A column as the JSON has it."""
    return [
        {
            "class": ATTRIBUTE,
            "num-children": 0,
            "name": name,
            "exprId": {"id": number, "jvmId": "x"},
            "qualifier": [],
        }
    ]


def test_a_plan_is_read_from_its_json():
    """Operators from the top, expressions as trees, the plan of a subquery inside its expression, join types by their names."""
    relation = {
        "class": "org.apache.spark.sql.execution.datasources.LogicalRelation",
        "num-children": 0,
        "relation": None,
        "output": [attribute(1)],
    }
    other = {**relation, "output": [attribute(2, "b")]}
    exists = {
        "class": "org.apache.spark.sql.catalyst.expressions.Exists",
        "num-children": 0,
        "plan": [relation],
    }
    condition = [{"class": "x.And", "num-children": 2}, *attribute(1), exists]
    text = json.dumps([
        {"class": LOGICAL + "Filter", "num-children": 1, "condition": condition, "child": 0},
        {"class": LOGICAL + "Join", "num-children": 2, "left": 0, "right": 1, "joinType": {"object": "org.apache.spark.sql.catalyst.plans.LeftOuter$"}},
        relation,
        other,
    ])  # fmt: skip
    root = read_plan(text)
    join = root.children[0]
    assert (root.kind, join.kind, join.join_type, join.number) == ("Filter", "Join", "LeftOuter", 1)
    assert root.output == (1, 2)
    (filter_,) = root.exprs("condition")
    assert filter_.references == {1}
    assert filter_.has_subquery
    assert [plan.kind for plan in root.subquery_plans] == ["LogicalRelation"]
    assert not is_distinct(root)


@pytest.mark.parametrize("text", ["{}", "[]", "x"])
def test_what_is_no_plan(text: str):
    """Another form of the JSON is not taken for a plan."""
    with pytest.raises(ValueError):
        read_plan(text)


def test_what_rows_of_an_expand_are_made_of():
    """The plan's text leaves it out and it is given beside it: what it reads is known, and a clock in it is seen."""
    sales = {"class": "x.LogicalRelation", "num-children": 0, "output": [attribute(1), attribute(2)]}
    expand = {
        "class": LOGICAL + "Expand",
        "num-children": 1,
        "projections": None,
        "output": [attribute(1), attribute(30)],
        "child": 0,
    }
    parts = [attribute(1), attribute(2), attribute(1), [{"class": "x.CurrentDate", "num-children": 0}]]
    text = json.dumps([expand, sales])
    root = read_plan(text, {0: [json.dumps(part) for part in parts]})
    assert [[one.id for one in row] for row in root.projections] == [[1, 2], [1, None]]
    assert [issue.sub_type for issue in shape_issues(root)] == ["TIME_FUNCTION"]
    assert read_plan(text).projections == []


def test_wide_views_are_looked_into_column_by_column():
    """Twice as many columns are about twice as much to do, not four times: a view of two thousand sums is planned in a second."""

    def calls(sums: int) -> int:
        numbers = range(2, sums + 2)
        outputs = [p.named(p.aggregate("Sum", number), 10_000 + number) for number in numbers]
        root = p.numbered(p.group(p.leaf(1, *numbers), (1,), p.column(1), *outputs))
        profile = cProfile.Profile()
        profile.runcall(leaf_techniques, root, ["int", *["bigint"] * sums])
        return sum(entry.callcount for entry in profile.getstats())

    assert calls(400) < 3 * calls(200)
