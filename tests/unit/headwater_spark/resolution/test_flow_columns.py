"""Flows that bring changes to one target: what they have to agree in, and what its own query must be."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import types as T
from tests.unit.headwater_spark.auto_cdc.change_batches import columns_of
from tests.unit.headwater_spark.plain_columns import col
from tests.unit.headwater_spark.plain_rows import plain_functions

from headwater import pipelines as dp
from headwater.definitions.change_conditions import InvalidChangeFlow
from headwater.definitions.flow import Flow
from headwater.graph.change_targets import hydrated
from headwater.graph.registry import Registry, registering
from headwater_spark.auto_cdc import shared_columns
from headwater_spark.auto_cdc.change_columns import ChangeColumns
from headwater_spark.resolution import flow_columns as module

ARGUMENTS: dict[str, Any] = {"target": "users", "source": "cdc", "keys": ["key"], "sequence_by": "at"}
COLUMNS, HISTORY = columns_of(), columns_of(history=True, tracked=("name",))


def flows_of(*, own_query: bool = False) -> list[Flow]:
    """Two flows into a target; with a query of its own, that and one more."""
    with registering(Registry(catalog=None, schema="shop")) as registry:
        if own_query:
            dp.table(name="users")(lambda: None)
        else:
            dp.create_streaming_table("users")
            dp.create_auto_cdc_flow(name="first", **ARGUMENTS)
        dp.create_auto_cdc_flow(name="second", **ARGUMENTS)
        return hydrated(registry.flows())


def analysed(
    monkeypatch: pytest.MonkeyPatch, flows: list[Flow], columns: list[ChangeColumns], *, streams: bool = False
) -> dict[str, ChangeColumns]:
    """Analyse the flows, which come with these columns."""
    left = iter(columns)
    monkeypatch.setattr(module, "change_columns", lambda *_: next(left))
    calls: Any = SimpleNamespace(
        changes={}, flows_of=lambda _: flows, evaluate=lambda _: SimpleNamespace(isStreaming=streams)
    )
    dataset: Any = SimpleNamespace(partition_columns=())
    module.analysed_frames(calls, dataset)
    return calls.changes  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("first", "second", "part"),
    [
        (COLUMNS, replace(COLUMNS, keys=("name",)), r"keys: \['name'\] and \['key'\]"),
        (HISTORY, replace(HISTORY, fields=HISTORY.fields[:2]), "columns"),
        (COLUMNS, replace(COLUMNS, sequence_type=T.StringType()), "the type of sequence_by"),
        (COLUMNS, HISTORY, "stored_as_scd_type"),
        (HISTORY, replace(HISTORY, tracked=("city",)), "tracked columns"),
        (COLUMNS, replace(COLUMNS, ignored=("name",)), "ignored nulls"),
        (COLUMNS, replace(COLUMNS, selected=col("name")), r"columns_to_update \(given or not\)"),
    ],
)
def test_what_flows_of_one_target_agree_in(
    monkeypatch: pytest.MonkeyPatch, first: ChangeColumns, second: ChangeColumns, part: str
):
    """Another key, type or meaning of a NULL in one of them is refused with both; letter case does not count."""
    with pytest.raises(InvalidChangeFlow, match=f"'second' and 'first' write to 'users', and differ in {part}") as caught:  # fmt: skip
        analysed(monkeypatch, flows_of(), [first, second])
    assert caught.value.remedy.startswith("Give them the same")
    upper = replace(first, keys=tuple(key.upper() for key in first.keys))
    assert list(analysed(monkeypatch, flows_of(), [first, upper])) == ["first", "second"]


def test_columns_of_flows_beside_each_other(monkeypatch: pytest.MonkeyPatch):
    """Flows of type 1 may bring other columns each; a target's own query has those of the changes."""
    plain_functions(monkeypatch, shared_columns)
    without = replace(COLUMNS, fields=COLUMNS.fields[:2])
    made = analysed(monkeypatch, flows_of(), [COLUMNS, without])
    assert [columns.names for columns in made.values()] == [["key", "name", "city"]] * 2
    with pytest.raises(InvalidChangeFlow, match="differ in columns") as caught:
        analysed(monkeypatch, flows_of(own_query=True), [COLUMNS, without])
    assert "selected as NULL" in caught.value.remedy


def test_a_query_of_its_own_is_a_batch(monkeypatch: pytest.MonkeyPatch):
    """It fills the target once: a stream is refused, with what to read by."""
    with pytest.raises(InvalidChangeFlow, match="this one is a stream") as caught:
        analysed(monkeypatch, flows_of(own_query=True), [COLUMNS, COLUMNS], streams=True)
    assert "spark.read" in caught.value.remedy
    assert len(analysed(monkeypatch, flows_of(own_query=True), [COLUMNS, COLUMNS])) == 2
