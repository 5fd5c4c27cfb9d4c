"""Tables and views that come with AUTO CDC without a declaration of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headwater import pipelines as dp
from headwater.definitions.dataset import DatasetKind
from headwater.graph.history_views import declare_history_views, declare_targets
from headwater.graph.registry import Registry, registering

ENDS = ("__START_AT", "__END_AT")
SYSTEM = ("__SYSTEM_START_AT", "__SYSTEM_END_AT")


class Rows:
    """What a view reads, as (condition, columns)."""

    def __init__(self, *columns: str, condition: str | None = None) -> None:
        self.columns, self.condition = list(columns), condition

    def where(self, condition: str) -> Rows:
        return Rows(*self.columns, condition=condition)

    def withColumnRenamed(self, before: str, after: str) -> Rows:  # noqa: N802 - Spark's name
        return Rows(*(after if name == before else name for name in self.columns), condition=self.condition)


class Reader:
    """Gives a history by its name."""

    def __init__(self, rows: Rows) -> None:
        self.rows, self.asked = rows, list[str]()

    def read_dataset(self, name: str) -> Rows:
        self.asked.append(name)
        return self.rows


@pytest.fixture
def registry() -> Iterator[Registry]:
    """A pipeline that declares what a test does."""
    with registering(Registry(catalog=None, schema="shop")) as registry:
        yield registry


def changes(target: str = "users", **more: Any) -> None:
    """A flow of changes."""
    dp.create_auto_cdc_flow(target=target, source="changes", keys=["id"], sequence_by="at", **more)


def kinds(registry: Registry) -> dict[str, DatasetKind]:
    return {dataset.name: dataset.kind for dataset in registry.datasets()}


def test_a_target_that_nothing_declares(registry: Registry):
    """It is a streaming table; one that is declared, in whatever case, stays what it is."""
    dp.create_streaming_table("Users", comment="mine")
    changes("users")
    changes("others")
    declare_targets(registry)
    assert kinds(registry) == dict.fromkeys(["Users", "others"], DatasetKind.STREAMING_TABLE)
    assert [dataset.comment for dataset in registry.datasets()] == ["mine", None]


def test_which_views_are_declared(registry: Registry):
    """Two of each history, of changes and of snapshots, but for a name that the user has taken; none of a latest state."""
    changes("latest")
    changes("users", stored_as_scd_type=2)
    dp.create_auto_cdc_from_snapshot_flow(
        target="stock", source="snapshots", keys=["id"], stored_as_scd_type=2
    )
    dp.create_streaming_table("USERS_versions")
    declare_targets(registry)
    named = declare_history_views(registry)
    assert named == {"users_current", "stock_current", "stock_versions"}
    assert {name for name, kind in kinds(registry).items() if kind is DatasetKind.TEMPORARY_VIEW} == named
    assert {flow.name for flow in registry.flows()} == {"latest", "users", "stock", *named}


@pytest.mark.parametrize("bitemporal", [False, True])
def test_what_a_view_has(registry: Registry, bitemporal: bool):
    """All rows, or those that hold now, which of a bitemporal history are believed now, too; a column of the user's keeps its name."""
    more = (
        {"stored_as_scd_type": "bitemporal", "system_sequence_by": "known"}
        if bitemporal
        else {"stored_as_scd_type": 2}
    )
    changes("users", **more)
    declare_targets(registry)
    declare_history_views(registry)
    reader = Reader(Rows("id", "Known_To", *ENDS, *SYSTEM))
    registry.reader = reader  # type: ignore[assignment]
    now = "__END_AT IS NULL" + (" AND __SYSTEM_END_AT IS NULL" if bitemporal else "")
    system = ["known_from", "__SYSTEM_END_AT"] if bitemporal else [*SYSTEM]
    for name, condition in (("users_current", now), ("users_versions", None)):
        view: Any = next(flow for flow in registry.flows() if flow.name == name).function()
        assert view.columns == ["id", "Known_To", "valid_from", "valid_to", *system]
        assert view.condition == condition
    assert reader.asked == ["users", "users"]
