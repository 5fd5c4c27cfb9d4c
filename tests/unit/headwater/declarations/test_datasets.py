"""Declarations of tables and views keep what can be honoured and refuse the rest."""

from __future__ import annotations

from typing import Any

import pytest

from headwater import pipelines as dp
from headwater.definitions.dataset import Dataset, DatasetKind
from headwater.definitions.expectation import ViolationAction
from headwater.errors import InvalidExpectation, UnsupportedArgument
from headwater.graph.registry import Registry, registering


@pytest.fixture(autouse=True)
def registry():
    """A registry that declarations go to."""
    with registering(Registry(schema="shop")) as active:
        yield active


def only(registry: Registry) -> Dataset:
    """The one dataset that was declared."""
    (dataset,) = registry.datasets()
    return dataset


@pytest.mark.parametrize(
    ("decorate", "kind"),
    [
        (dp.table, DatasetKind.TABLE),
        (dp.streaming_table, DatasetKind.STREAMING_TABLE),
        (dp.materialized_view, DatasetKind.MATERIALIZED_VIEW),
        (dp.temporary_view, DatasetKind.TEMPORARY_VIEW),
        (dp.view, DatasetKind.TEMPORARY_VIEW),
    ],
)
def test_each_decorator_declares_its_kind(registry: Registry, decorate: Any, kind: DatasetKind):
    """A decorator records a dataset of its kind under the function's name, and its one flow."""

    @decorate
    def orders():
        return None

    assert (only(registry).name, only(registry).kind) == ("orders", kind)
    assert only(registry).stored == (kind is not DatasetKind.TEMPORARY_VIEW)
    (flow,) = registry.flows()
    assert flow.function is orders


def test_the_older_spelling_of_private(registry: Registry):
    """``temporary=True`` of older pipelines is a private table."""

    @dp.table(temporary=True)
    def orders():
        return None

    assert only(registry).private


def test_what_is_kept_of_the_arguments(registry: Registry):
    """Properties and confs become Spark's texts, a bare column name is one column."""

    @dp.table(
        name="raw.orders", comment="c", spark_conf={"a": 1, "b": True}, table_properties={"x": False, "n": 2},
        path="/data/orders", partition_cols="day", schema="id INT", format="DELTA",
    )  # fmt: skip
    def anything():
        return None

    dataset = only(registry)
    assert (dataset.name, dataset.comment, dataset.path, dataset.schema) == (
        "raw.orders",
        "c",
        "/data/orders",
        "id INT",
    )
    assert dataset.table_properties == {"x": "false", "n": "2"}
    assert dataset.partition_columns == ("day",)
    assert registry.flows()[0].spark_conf == {"a": "1", "b": "true"}


def test_a_table_for_several_flows(registry: Registry):
    """create_streaming_table declares a table without a flow; its rules hold for every flow into it."""
    dp.create_streaming_table(
        "orders",
        cluster_by=["id"],
        expect_all={"w": "a"},
        expect_all_or_drop={"d": "b"},
        expect_all_or_fail={"f": "c"},
    )
    dataset = only(registry)
    assert dataset.cluster_columns == ("id",)
    assert [(rule.name, rule.action) for rule in dataset.expectations] == [
        ("w", ViolationAction.WARN),
        ("d", ViolationAction.DROP),
        ("f", ViolationAction.FAIL),
    ]
    assert registry.flows() == []


def test_a_flow_into_a_table(registry: Registry):
    """append_flow records target, once and its own name; the target may be spelled with its schema."""
    dp.create_streaming_table("orders")

    @dp.append_flow(target="shop.orders", once=True)
    def backfill():
        return None

    (flow,) = registry.flows()
    assert (flow.name, flow.target, flow.once) == ("backfill", "orders", True)


def test_clustering_that_is_left_to_the_platform_is_noted(registry: Registry):
    """No row depends on it: the tables are declared, with the columns that are named, and each is noted."""

    @dp.table(cluster_by_auto=True, cluster_by=["id"])
    def orders():
        return None

    dp.create_streaming_table("all_orders", cluster_by_auto=True)
    assert [dataset.cluster_columns for dataset in registry.datasets()] == [("id",), ()]
    assert [(idle.dataset, idle.clause) for idle in registry.idle_clauses] == [
        ("orders", "cluster_by_auto"), ("all_orders", "cluster_by_auto"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "arguments",
    [
        {"row_filter": "f"},
        {"replace_using": ["id"]},
        {"sequence_by": "at"},
        {"format": "parquet"},
        {"table_properties": ["x"]},
        {"table_properties": {"owner": "sales"}},
        {"table_properties": {"x": None}},
        {"partition_cols": [1]},
        {"partition_cols": 5},
        {"cluster_by": 5},
        {"comment": 5},
        {"path": 5},
        {"format": 5},
        {"private": "no"},
        {"temporary": "false"},
        {"partition_cols": ["a"], "cluster_by": ["b"]},
        {"spark_conf": "x=1"},
    ],
    ids=str,
)
def test_an_argument_that_cannot_be_honoured(registry: Registry, arguments: dict[str, Any]):
    """It is refused with the user's line and a way out, never ignored; nothing is declared."""
    with pytest.raises(UnsupportedArgument) as caught:

        @dp.table(**arguments)
        def orders():
            return None

    assert any(name in caught.value.what for name in arguments)
    assert f"{__file__}:" in caught.value.where
    assert caught.value.remedy


def test_other_arguments_that_are_refused(registry: Registry):
    """What is refused of the other declarations: a refresh policy that is none, and checkpoints that are no folders."""
    with pytest.raises(UnsupportedArgument, match="refresh_policy"):
        dp.materialized_view(refresh_policy="sometimes")(lambda: None)
    for folder, once in (
        ("x", False),
        ("gs://bucket/x", False),
        ("s3:///x", False),
        (1, False),
        ("/x", True),
    ):
        with pytest.raises(UnsupportedArgument, match="import_checkpoint") as refused:
            dp.append_flow(target="t", import_checkpoint=folder, once=once)(lambda: None)
        assert refused.value.remedy
    dp.append_flow(target="t", name="f", import_checkpoint="file:///a%20b")(lambda: None)
    assert registry.flows()[0].import_checkpoint == "/a b"
    dp.append_flow(target="t", name="g", import_checkpoint="s3a://bucket/a b")(lambda: None)
    assert registry.flows()[1].import_checkpoint == "s3://bucket/a b"
    with pytest.raises(UnsupportedArgument, match="decorates a function"):
        dp.table("orders")


@pytest.mark.parametrize(
    ("call", "what", "remedy"),
    [
        (lambda: dp.table(coment="x"), "dp.table has no argument 'coment'", "Did you mean 'comment'?"),
        (lambda: dp.append_flow(target="t", sparkConf={}), "no argument 'sparkConf'", "'spark_conf'"),
        (lambda: dp.expect("r", "a", action="drop"), "no argument 'action'", "name, constraint"),
        (
            lambda: dp.create_auto_cdc_flow("t", "s", key=["id"], sequence_by="n"),
            "no argument 'key'",
            "'keys'",
        ),
        (lambda: dp.append_flow(), "dp.append_flow: missing a required", "target"),
        (lambda: dp.read("t", 1), "dp.read: too many positional arguments", "name"),
    ],
)
def test_a_call_that_does_not_fit(call: Any, what: str, remedy: str):
    """An argument that a function lacks, and one that is missing, are refused with the user's line and the nearest name."""
    with pytest.raises(UnsupportedArgument) as caught:
        call()
    assert what in caught.value.what
    assert f"{__file__}:" in str(caught.value.where)
    assert remedy in caught.value.remedy


def test_a_truth_value_is_no_text(registry: Registry):
    """``once="no"`` would be true: it is refused with the user's line, and nothing is declared; 0, 1 and None are what they are in Python."""
    for call in (
        lambda: dp.append_flow(target="t", once="no")(lambda: None),
        lambda: dp.create_auto_cdc_flow("t", "s", ["id"], "n", ignore_null_updates="False"),
        lambda: dp.create_auto_cdc_from_snapshot_flow("t", "s", ["id"], once=2),
    ):
        with pytest.raises(UnsupportedArgument, match="is True or False, not") as caught:
            call()
        assert f"{__file__}:" in str(caught.value.where)
    assert not registry.flows()
    dp.append_flow(target="t", name="f", once=1)(lambda: None)
    dp.append_flow(target="t", name="g", once=None)(lambda: None)
    assert [bool(flow.once) for flow in registry.flows()] == [True, False]


def test_settings_of_a_table_without_a_query(registry: Registry):
    """They hold for every flow into it, before or after its declaration, where the flow has no value of its own."""
    dp.append_flow(target="t", name="early")(lambda: None)
    dp.create_streaming_table("t", spark_conf={"a": True, "b": 1})
    dp.append_flow(target="t", name="late", spark_conf={"b": 2, "c": 3})(lambda: None)
    dp.append_flow(target="u", name="other")(lambda: None)
    assert {flow.name: flow.spark_conf for flow in registry.flows()} == {
        "early": {"a": "true", "b": "1"},
        "late": {"a": "true", "b": "2", "c": "3"},
        "other": {},
    }


def test_a_table_that_flows_fill(registry: Registry):
    """``create_table`` called by itself is an empty table, at its line; above a function it is the table of that query."""
    dp.create_table("empty", comment="c", private=True, expect_all_or_drop={"r": "a > 0"})
    dp.create_table(name="named")

    @dp.create_table(name="queried", comment="q")
    def rows() -> None:
        return None

    @dp.create_table
    def bare() -> None:
        return None

    assert [dataset.name for dataset in registry.datasets()] == ["queried", "bare"]
    registry.declare_waiting()
    registry.declare_waiting()
    datasets = {dataset.name: dataset for dataset in registry.datasets()}
    assert list(datasets) == ["queried", "bare", "empty", "named"]
    assert [datasets[name].kind for name in ("queried", "bare")] == [DatasetKind.TABLE] * 2
    assert [datasets[name].kind for name in ("empty", "named")] == [DatasetKind.STREAMING_TABLE] * 2
    assert (datasets["empty"].private, datasets["empty"].expectations[0].name) == (True, "r")
    assert f"{__file__}:" in str(datasets["empty"].location)
    assert [flow.name for flow in registry.flows()] == ["queried", "bare"]
    with pytest.raises(UnsupportedArgument, match="no argument 'expect_all'"):
        dp.create_table(name="x", expect_all={"r": "a"})(lambda: None)


def test_a_flow_that_waits(registry: Registry):
    """``depends_on`` takes one name or several, in any spelling of the pipeline's, of flows also such that no dataset may have;
    anything else is refused."""
    dp.append_flow(target="t", name="a", depends_on="u")(lambda: None)
    dp.append_flow(target="t", name="b", depends_on=["raw.v", f"{registry.schema}.u"])(lambda: None)
    dp.update_flow(target="t", name="d", depends_on=["history 2020", "a"])(lambda: None)
    assert [flow.depends_on for flow in registry.flows()] == [("u",), ("raw.v", "u"), ("history 2020", "a")]
    with pytest.raises(UnsupportedArgument, match="depends_on takes names of flows or datasets") as refused:
        dp.append_flow(target="t", name="c", depends_on=[1])(lambda: None)
    assert f"{__file__}:" in refused.value.where


def test_settings_of_change_flows(registry: Registry):
    """A flow of changes has Spark settings of its own, as any other."""
    dp.create_auto_cdc_flow("t", "s", ["id"], "n", spark_conf={"spark.sql.shuffle.partitions": 3})
    assert registry.flows()[0].spark_conf == {"spark.sql.shuffle.partitions": "3"}


@pytest.mark.parametrize(
    "arguments", [("", "a > 0"), (" ", "a > 0"), (None, "a > 0"), ("r", ""), ("r", None), ("r", 1)]
)
def test_a_rule_without_text(arguments: tuple[Any, Any]):
    """Names and constraints are texts that say something; else the error names the user's line."""
    with pytest.raises(InvalidExpectation) as caught:
        dp.expect(*arguments)
    assert f"{__file__}:" in caught.value.where


def test_rules_that_are_no_dict():
    """expect_all takes a dict."""
    with pytest.raises(InvalidExpectation, match="takes a dict"):
        dp.expect_all(["a > 0"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("decorate", "action"),
    [
        (dp.expect("r", "a"), ViolationAction.WARN),
        (dp.expect_or_drop("r", "a"), ViolationAction.DROP),
        (dp.expect_or_fail("r", "a"), ViolationAction.FAIL),
        (dp.expect_all({"r": "a"}), ViolationAction.WARN),
        (dp.expect_all_or_drop({"r": "a"}), ViolationAction.DROP),
        (dp.expect_all_or_fail({"r": "a"}), ViolationAction.FAIL),
        (dp.expect_or_quarantine("r", "a"), ViolationAction.QUARANTINE),
        (dp.expect_all_or_quarantine({"r": "a"}), ViolationAction.QUARANTINE),
    ],
)
def test_what_each_rule_does(registry: Registry, decorate: Any, action: ViolationAction):
    """Each spelling of a rule has its action, and knows its line."""

    @dp.table
    @decorate
    def orders():
        return None

    (rule,) = only(registry).expectations
    assert (rule.name, rule.constraint, rule.action) == ("r", "a", action)
    assert rule.location.file == __file__


def test_rules_are_stacked_in_any_order(registry: Registry):
    """Above and below the dataset's decorator, of all kinds: they are the dataset's rules from the top down."""

    @dp.expect_all_or_drop({"b": "2", "c": "3"})
    @dp.table
    @dp.expect_or_quarantine("d", "4")
    @dp.expect("e", "5")
    def orders():
        return None

    rules = only(registry).expectations
    assert sorted((rule.name, rule.action.value) for rule in rules) == [
        ("b", "drop"), ("c", "drop"), ("d", "quarantine"), ("e", "warn"),
    ]  # fmt: skip


def test_a_rule_name_twice(registry: Registry):
    """One name on one dataset is refused whatever the kinds are; on another dataset it is another rule."""
    dp.expect("r", "a")(dp.table(name="other")(lambda: None))
    with pytest.raises(InvalidExpectation, match="'r' is given twice") as caught:

        @dp.expect("r", "a > 0")
        @dp.table
        @dp.expect_or_drop("r", "a > 1")
        def orders():
            return None

    assert f"{__file__}:" in str(caught.value.where)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("delta.feature.catalogManaged", "a catalog would own the table's commits"),
        ("delta.feature.catalogOwned-preview", "a catalog would own the table's commits"),
        ("io.unitycatalog.tableId", "a catalog would own the table's commits"),
        ("Delta.UniversalFormat.EnabledFormats", "Delta's converter to Iceberg is not among the jars"),
    ],
)
def test_properties_that_need_a_catalog_or_a_converter_are_refused(name: str, reason: str):
    """They would be written into the table's log, and nothing here could honour them; the message says why, and what works."""
    with pytest.raises(UnsupportedArgument, match=reason) as refused:
        dp.create_streaming_table("sales", table_properties={name: "supported"})
    assert "Leave it out" in refused.value.remedy
