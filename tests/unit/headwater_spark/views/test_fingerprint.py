"""A view's fingerprint: the same as long as its query means the same."""

from __future__ import annotations

import pytest
from tests.unit.headwater_spark.views import plans as p

from headwater_spark.views.fingerprint import plan_fingerprint
from headwater_spark.views.plan_description import Expr, Node

TEXT = "Project [a#{0}]\n+- Filter (a#{0} > 1)\n   +- View (`headwater_read_{0}`, [a#{0}])\n      +- Relation [a#{0},b#{1}L] parquet\n"


def query(first: int = 1, limit: int = 1, extra: tuple[int, ...] = (), wrapped: str = "View") -> Node:
    """A query over a table, whose ids begin anywhere."""
    table = p.leaf(first, first + 1, *extra)
    read = Node(wrapped, 0, {"desc": {"createTime": first}}, (table,))
    return p.numbered(p.project(p.where(read, p.above(first, limit)), p.column(first)))


def of(
    node: Node,
    *,
    text: str = TEXT,
    ids: tuple[int, int] = (1, 2),
    leaves: tuple[str, ...] = ("table t",),
    more: tuple[str, ...] = (),
) -> str:
    """The fingerprint of a query."""
    # Names of columns are made from ids in these plans; a real one's stay.
    return plan_fingerprint(_renamed(node), text.format(*ids), leaves, more)


def _renamed(node: Node) -> Node:
    def expression(one: Expr) -> Expr:
        fields = {**one.fields, "name": "a"} if one.kind in ("AttributeReference", "Alias") else one.fields
        return Expr(one.kind, fields, tuple(map(expression, one.children)))

    fields = {
        key: expression(value) if isinstance(value, Expr)
        else tuple(map(expression, value)) if isinstance(value, tuple) else value
        for key, value in node.fields.items()
    }  # fmt: skip
    return Node(node.kind, node.number, fields, tuple(map(_renamed, node.children)))


def test_what_each_analysis_makes_anew_does_not_count():
    """Ids of columns, names of the views that stand for tables, columns that are not used, the counting of rows for rules."""
    before = of(query())
    assert before == of(query(51), ids=(51, 52))
    assert before == of(query(51, extra=(60, 61)), ids=(51, 52))
    assert before == of(query(wrapped="SubqueryAlias"))
    counted = TEXT.replace("+- View (", "+- CollectMetrics rules_7, [count(1) AS n#{1}L], 9\n      +- View (")
    assert before == of(query(wrapped="CollectMetrics"), text=counted)


@pytest.mark.parametrize(
    "other",
    [
        of(query(limit=2)),
        of(query(), text=TEXT.replace("> 1", ">= 1")),
        of(query(), leaves=("table u",)),
        of(query(), more=("rule positive a > 0",)),
        of(p.numbered(p.distinct(query()))),
    ],
)
def test_what_decides_about_rows_counts(other: str):
    """The plan, what only its text says, the tables, the rules."""
    assert of(query()) != other


def test_variables_of_lambdas_are_numbered_by_spark():
    """Each evaluation of a query gives them other names."""
    text = "Project [transform(a#{0}, lambdafunction(lambda {2}#9 + 1)) AS b#{1}]\n"
    assert of(query(), text=text.replace("{2}", "x_1")) == of(query(), text=text.replace("{2}", "x_7"))


def test_ids_inside_of_pairs():
    """The branches of a CASE are pairs, in which columns are described a second time: their ids are no more stable there."""

    def case(number: int, value: int = 1) -> Node:
        pair = {
            "product-class": "scala.Tuple2",
            "_1": [{"class": "x.A", "num-children": 0, "exprId": {"id": number}, "value": value}],
        }
        chosen = Expr("CaseWhen", {"branches": [pair]}, (p.column(number),))
        return p.numbered(p.project(p.leaf(number), p.named(chosen, number + 1)))

    assert of(case(1), text="", ids=()) == of(case(31), text="", ids=())
    assert of(case(1), text="", ids=()) != of(case(1, 2), text="", ids=())


def test_which_of_two_columns_counts():
    """Of two reads with columns of one name, the one that is used is distinguished from the other."""
    joined = p.join(p.leaf(1), p.leaf(2), "Inner", p.equal(1, 2))
    one, other = (p.numbered(p.project(joined, p.column(number))) for number in (1, 2))
    assert of(one, text="", ids=()) != of(other, text="", ids=())


def test_bytes_are_known_by_the_plans_own_text():
    """Bytes in a query don't make it another one each time it is analysed, and other bytes do."""

    def with_bytes(place: str, content: str) -> str:
        value = Expr("Literal", {"value": f"[B@{place}", "dataType": "binary"})
        root = Node("Filter", 0, {"condition": (Expr("EqualTo", {}, (value, value)),)}, (p.leaf(1),))
        return of(p.numbered(root), text=f"Filter ({content} = {content})\n")

    assert with_bytes("1f2e", "0x01") == with_bytes("77aa", "0x01")
    assert with_bytes("1f2e", "0x01") != with_bytes("1f2e", "0x02")
