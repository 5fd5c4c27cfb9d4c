"""The registry records what sources declare, and refuses what can't stand side by side."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from headwater import pipelines as dp
from headwater.definitions.source_location import SourceLocation, declared_at
from headwater.errors import DuplicateDataset, InvalidExpectation, InvalidName
from headwater.graph.registry import Registry, active_registry, registering


@pytest.fixture
def registry():
    """A registry that declarations go to."""
    with registering(Registry(catalog=None, schema="shop")) as active:
        yield active


def here() -> str:
    """This file, as places name it."""
    return __file__


def test_declarations_in_their_order(registry: Registry):
    """Datasets and flows come in the order of declaration, each with the line of its function."""

    @dp.table
    def first():
        return None

    @dp.materialized_view(name="second", comment="c")
    def anything():
        return None

    assert [dataset.name for dataset in registry.datasets()] == ["first", "second"]
    assert [(flow.name, flow.target) for flow in registry.flows()] == [
        ("first", "first"),
        ("second", "second"),
    ]
    assert registry.datasets()[0].location.file == here()
    assert registry.datasets()[0].location.line == first.__code__.co_firstlineno


@pytest.mark.parametrize("other", ["orders", "ORDERS", "shop.orders", "`orders`", "LIVE.orders"])
def test_a_name_defined_twice(registry: Registry, other: str):
    """Two datasets of one name are refused, however it is spelled, with both places."""
    dp.create_streaming_table("orders")
    with pytest.raises(DuplicateDataset) as caught:
        dp.create_streaming_table(other)
    assert caught.value.where.count(f"{here()}:") == 2


def test_a_line_that_is_run_twice(registry: Registry):
    """Both places are one: a loop without names of its own, or a source that another one imports. The remedy says so."""

    def declare() -> None:
        dp.create_streaming_table("orders")

    declare()
    with pytest.raises(DuplicateDataset) as caught:
        declare()
    assert "that another one imports" in caught.value.remedy
    assert caught.value.where.count(f"{here()}:") == 1
    with pytest.raises(DuplicateDataset) as caught:
        dp.create_streaming_table("orders")
    assert "imports" not in caught.value.remedy


def test_properties_that_only_the_platform_has(registry: Registry):
    """Delta would refuse them, and no row depends on them: they are left out, in any letter case, and noted."""
    properties = {
        "delta.tuneFileSizesForRewrites": "true",
        "DELTA.targetFileSize": "64mb",
        "delta.appendOnly": "true",
    }
    dp.create_streaming_table("orders", table_properties=properties)
    assert registry.datasets()[0].table_properties == {"delta.appendOnly": "true"}
    assert [(note.dataset, note.clause) for note in registry.idle_clauses] == [
        ("orders", "delta.tuneFileSizesForRewrites"),
        ("orders", "DELTA.targetFileSize"),
    ]


def test_names_with_schemas(registry: Registry):
    """The same table name in another schema is another dataset."""
    dp.create_streaming_table("orders")
    dp.create_streaming_table("raw.orders")
    dp.create_streaming_table("main.raw.orders")
    assert [dataset.name for dataset in registry.datasets()] == ["orders", "raw.orders", "main.raw.orders"]
    assert [d.qualified_name.location for d in registry.datasets()] == [
        "shop/orders",
        "raw/orders",
        "main/raw/orders",
    ]


def test_a_flow_defined_twice(registry: Registry):
    """Two flows of one name would share a checkpoint: refused with both places."""
    dp.create_streaming_table("orders")
    dp.append_flow(lambda: None, target="orders", name="web")
    with pytest.raises(DuplicateDataset, match="flow 'web'") as caught:
        dp.append_flow(lambda: None, target="orders", name="web")
    assert "dp.append_flow(target=..., name=...)" in caught.value.remedy


def test_the_name_of_a_second_flow_of_changes(registry: Registry):
    """What to write is in the language of the flow: a name of AUTO CDC in Python, a statement in SQL."""
    for place, remedy in (
        (None, "dp.create_auto_cdc_flow(..., name=...)"),
        (SourceLocation("a.sql", 2), "CREATE FLOW name AS AUTO CDC INTO"),
    ):
        with registering(Registry(schema="shop")), declared_at(place) if place else nullcontext():
            dp.create_auto_cdc_flow("users", "changes", ["id"], "n")
            with pytest.raises(DuplicateDataset, match="flow 'users'") as caught:
                dp.create_auto_cdc_flow("users", "changes", ["id"], "n")
        assert remedy in caught.value.remedy


@pytest.mark.parametrize("name", ["", "a b", "a/b", "../x", "1a", "a.b.c.d", "a;drop", "x" * 129, "ä"])
def test_a_name_that_cannot_be(registry: Registry, name: str):
    """Names become folders and SQL identifiers: anything else than plain identifiers is refused with its line."""
    with pytest.raises(InvalidName) as caught:
        dp.create_streaming_table(name)
    assert here() in caught.value.where


@pytest.mark.parametrize("name", ["a/b", "../x", "", " "])
def test_a_flow_name_that_cannot_be(registry: Registry, name: str):
    """A flow's name becomes a folder, too."""
    dp.create_streaming_table("orders")
    with pytest.raises(InvalidName):
        dp.append_flow(lambda: None, target="orders", name=name or "/")


def test_the_same_rule_twice(registry: Registry):
    """Two rules of one name on one dataset would be counted as one: refused."""
    with pytest.raises(InvalidExpectation, match="twice"):

        @dp.table
        @dp.expect("r", "a > 0")
        @dp.expect_or_drop("r", "a > 1")
        def orders():
            return None


def test_rules_belong_to_their_own_dataset(registry: Registry):
    """A rule stays with the function it stands on, above or below the dataset's decorator, in reading order."""

    @dp.expect("above", "a > 0")
    @dp.table
    @dp.expect_all({"first": "a > 1", "second": "a > 2"})
    @dp.expect_or_fail("below", "a > 3")
    def orders():
        return None

    @dp.table
    @dp.expect("above", "b > 0")
    def others():
        return None

    orders_rules, others_rules = (dataset.expectations for dataset in registry.datasets())
    assert [rule.name for rule in orders_rules] == ["above", "first", "second", "below"]
    assert [(rule.name, rule.constraint) for rule in others_rules] == [("above", "b > 0")]


def test_no_registry_outside_a_pipeline():
    """Inside the block declarations are recorded, after it nowhere."""
    with registering(Registry()) as registry:
        assert active_registry() is registry
    assert active_registry() is None


@pytest.mark.parametrize("table", [True, False])
def test_a_rule_on_a_flow(registry: Registry, table: bool):
    """It would have no effect: the table takes it, and a sink none."""
    if table:
        dp.create_streaming_table("out")
    else:
        dp.create_sink("out", "kafka", {"topic": "t", "kafka.bootstrap.servers": "b:1"})

    @dp.append_flow(target="out")
    @dp.expect("r", "a > 0")
    def more():
        return None

    with pytest.raises(InvalidExpectation, match="stands on 'more'") as caught:
        registry.check_expectations()
    assert ('create_streaming_table("out"' in caught.value.remedy) is table
    assert ("sinks take no" in caught.value.remedy) is not table
