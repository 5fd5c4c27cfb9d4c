"""What a target of AUTO CDC may say of itself."""

from __future__ import annotations

import pytest

from headwater import pipelines as dp
from headwater.definitions.change_conditions import InvalidChangeFlow
from headwater.definitions.flow import FlowKind
from headwater.graph.change_targets import RETENTION_PROPERTY, check_only_changes, check_retention
from headwater.graph.registry import Registry, registering


def checked(given: str) -> None:
    """Check a target whose property is ``given``."""
    with registering(Registry(catalog=None, schema="shop")) as registry:
        dp.create_streaming_table("users", table_properties={RETENTION_PROPERTY: given})
        dp.create_auto_cdc_flow(target="users", source="changes", keys=["id"], sequence_by="at")
        check_retention(registry.flows()[0], registry.datasets()[0])


@pytest.mark.parametrize("given", ["two days", "-1", "nan", "inf", ""])
def test_a_retention_that_is_no_time(given: str):
    """A time that is not a number of seconds is refused with the table's line; it would end an update halfway."""
    with pytest.raises(InvalidChangeFlow, match="not a number of seconds") as caught:
        checked(given)
    assert str(caught.value.where).startswith(__file__)
    assert "172800" in caught.value.remedy


@pytest.mark.parametrize("given", ["0", "172800", "1.5"])
def test_a_retention_in_seconds(given: str):
    """Numbers of seconds are taken, none at all and parts of them too."""
    checked(given)


@pytest.mark.parametrize("name", ["archive", "users"])
@pytest.mark.parametrize("before", [False, True])
def test_a_batch_that_is_appended_once(name: str, before: bool):
    """Beside changes it brings upserts under their own sequences, whichever is declared first and whatever it is called; a stream does not."""

    def appended() -> None:
        dp.append_flow(target="users", name=name, once=True)(lambda: None)

    with registering(Registry(catalog=None, schema="shop")) as registry:
        dp.create_streaming_table("users")
        if before:
            appended()
        dp.create_auto_cdc_flow(
            target="users", source="changes", keys=["id"], sequence_by="at", apply_as_deletes="op = 'D'"
        )
        if not before:
            appended()
        flows = {flow.name: flow for flow in registry.flows()}
        assert set(flows) == {"users", "archive" if name == "archive" else "users_hydration"}
        batch = flows["archive" if name == "archive" else "users_hydration"]
        assert (batch.once, batch.kind) == (True, FlowKind.CHANGES)
        assert batch.changes is not None
        assert (batch.changes.hydrates, batch.changes.apply_as_deletes, batch.changes.sequence_by) == (
            True,
            None,
            "at",
        )
        for flow in registry.flows():
            check_only_changes(flow, registry.flows())
        dp.append_flow(target="users", name="more")(lambda: None)
        with pytest.raises(InvalidChangeFlow, match="rows from 'more'"):
            check_only_changes(flows["users"], registry.flows())


@pytest.mark.parametrize("other", ["snapshots", "changes", "rows"])
def test_a_target_of_snapshots_takes_nothing_else(other: str):
    """What a snapshot does not have is deleted: another flow of any kind is refused with the line of the snapshots."""
    with registering(Registry(catalog=None, schema="shop")) as registry:
        dp.create_streaming_table("users")
        dp.create_auto_cdc_from_snapshot_flow(target="users", source="states", keys=["id"])
        flow = registry.flows()[0]
        check_only_changes(flow, registry.flows())
        if other == "snapshots":
            dp.create_auto_cdc_from_snapshot_flow(target="users", source="more", keys=["id"], name="more")
        elif other == "changes":
            dp.create_auto_cdc_flow(target="users", source="more", keys=["id"], sequence_by="at", name="more")
        else:
            dp.append_flow(target="users", name="more")(lambda: None)
        with pytest.raises(InvalidChangeFlow, match="'more' writes to it too") as caught:
            check_only_changes(flow, registry.flows())
    assert caught.value.where == str(flow.location)
    assert "a table of its own" in caught.value.remedy
