"""Flows that give one target different columns: each sets its own, whichever of them comes first."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import Any

import pytest
from pyspark.sql import types as T
from tests.unit.headwater_spark.auto_cdc.change_batches import (
    FIELDS,
    Merged,
    columns_of,
    event,
    on_plain_rows,
)
from tests.unit.headwater_spark.plain_columns import array, col, lit, when
from tests.unit.headwater_spark.plain_rows import plain_functions

from headwater_spark.auto_cdc import shared_columns as module
from headwater_spark.auto_cdc.merge_by_column import merge_by_column
from headwater_spark.auto_cdc.shared_columns import united

KEY, NAME, CITY = FIELDS
NAMES, CITIES = columns_of(fields=(KEY, NAME)), columns_of(fields=(KEY, CITY))


@pytest.fixture(autouse=True, scope="module")
def _plain() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        on_plain_rows(patch)
        plain_functions(patch, module)
        yield


def test_each_sets_its_own():
    """In whatever order the batches of two flows come, a column has what the flow that brings it sent last."""
    batches = [
        ("names", [event(1, 1, "U", "a", "not its own")]),
        ("cities", [event(1, 2, "U", "not its own", "x"), event(2, 1, "U", None, "y")]),
        ("names", [event(1, 3, "U", "b", None), event(2, 2, "D", None, None), event(2, 3, "U", None, None)]),
    ]
    for order in permutations(batches):
        flows = united({"names": NAMES, "cities": CITIES})
        targets = {name: Merged(columns, merge_by_column) for name, columns in flows.items()}
        targets["cities"].table, targets["cities"].side = targets["names"].table, targets["names"].side
        for name, batch in order:
            own = {"names": "name", "cities": "city"}[name]
            targets[name].apply([{**row, **dict.fromkeys({"name", "city"} - {own})} for row in batch])
        assert targets["names"].rows() == [
            {"key": 1, "name": "b", "city": "x"}, {"key": 2, "name": None, "city": None},
        ]  # fmt: skip


def test_flows_with_the_same_columns_stay_as_they_are():
    """Whatever their order and letter case."""
    other = columns_of(fields=(CITY, KEY, T.StructField("NAME", T.StringType())))
    flows = {"a": columns_of(), "b": other}
    assert united(flows) == flows
    assert united({}) == {}


def test_one_flow_of_three_has_other_columns():
    """Then each of them says what it sets, also those that agree."""
    flows = united({"a": NAMES, "b": NAMES, "c": CITIES})
    assert [columns.names for columns in flows.values()] == [["key", "name", "city"]] * 3
    assert [columns.selected is None for columns in flows.values()] == [False] * 3


def test_what_a_flow_sets():
    """Its own columns; of those that an event names, its own."""
    named: Any = when(col("at") == lit(1), array(lit("name"), lit("city")))
    flows = united({"names": columns_of(fields=(KEY, NAME), selected=named), "cities": CITIES})
    selected: Any = flows["names"].selected
    assert selected.of({"at": 1}) == ["name"]
    assert selected.of({"at": 2}) == ["key", "name"]


def test_what_a_null_means_goes_for_all_flows():
    """A column of which one flow ignores NULL is decided in that way whichever flow brings it; names are as the first spells them."""
    spelled = columns_of(fields=(T.StructField("KEY", T.LongType()), CITY), keys=("KEY",), ignored=("city",))
    flows = united({"names": NAMES, "cities": spelled})
    for columns in flows.values():
        assert (columns.ignored, columns.names, columns.keys) == (
            ("city",),
            ["key", "name", "city"],
            ("key",),
        )
