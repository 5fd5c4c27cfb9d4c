"""A table that forgets which batches it has says so before a flow starts, and its log still tells them."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from headwater import pipelines as dp
from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.delta_log.table_history import transaction_version
from headwater.errors import InvalidPipeline
from headwater.graph.change_targets import check_transactions_are_kept
from headwater.graph.registry import Registry, registering
from headwater.preflight.checks import CHECKS, CHECKS_OF_ONCE_FLOWS, examine
from headwater.preflight.flow_start import FlowStart

PROPERTY = "delta.setTransactionRetentionDuration"
APPLICATION = "shop.bronze@0"


def forgetful(path: Path, *, days_ago: int = 3, **configuration: str) -> Path:
    """A table whose last batch of ``APPLICATION``, number 7, was committed some days ago."""
    rows = pa.table({"id": [1]})
    write_deltalake(str(path), rows, configuration=configuration or None)
    then = int((time.time() - days_ago * 86_400) * 1000)
    for number in (6, 7):
        properties = CommitProperties(
            custom_metadata={"userMetadata": json.dumps({"batch": number})},
            app_transactions=[Transaction(APPLICATION, number, then)],
        )
        write_deltalake(str(path), rows, mode="append", commit_properties=properties)
    return path


def test_an_id_that_has_expired_is_read_from_the_commits(tmp_path: Path):
    """After a pause longer than the table's retention of ids, the last batch is still known; other ids are not made up."""
    table = forgetful(tmp_path / "table", **{PROPERTY: "interval 1 days"})
    assert DeltaTable(str(table)).transaction_version(APPLICATION) is None  # what readers of the protocol see
    assert transaction_version(table, APPLICATION) == 7
    assert transaction_version(table, "shop.silver@0") is None


def test_an_id_that_is_known(tmp_path: Path):
    """Without the property the id is known however old it is."""
    table = forgetful(tmp_path / "table", days_ago=900)
    assert transaction_version(table, APPLICATION) == 7


@pytest.mark.parametrize("checks", [CHECKS, CHECKS_OF_ONCE_FLOWS])
def test_a_start_is_refused(tmp_path: Path, checks: tuple):
    """A flow does not start on a table that forgets its batches: Delta itself would take a repeated one for new."""
    for name, configuration in (("kept", {}), ("forgets", {PROPERTY: "interval 1 days"})):
        table = forgetful(tmp_path / name, **configuration)
        start = FlowStart(
            "shop", "bronze", "bronze", FlowCheckpoint(tmp_path / "c" / "b" / "f"), FlowState(), table, "id"
        )
        damages = [damage for damage in examine(start, checks) if damage.condition == "TRANSACTIONS_EXPIRE"]
        assert bool(damages) is (name == "forgets")
        assert not damages or PROPERTY in damages[0].error.remedy


@pytest.mark.parametrize("name", [PROPERTY, PROPERTY.lower()])
def test_a_definition_is_refused(name: str):
    """The property on the target of a flow is refused with the table's line, whatever its letter case."""
    with registering(Registry(catalog=None, schema="shop")) as registry:
        dp.create_streaming_table("users", table_properties={name: "interval 1 days"})
        dp.create_auto_cdc_flow(target="users", source="changes", keys=["id"], sequence_by="at")
        with pytest.raises(InvalidPipeline, match="forgets") as caught:
            check_transactions_are_kept(registry.flows()[0], registry.datasets()[0])
    assert str(caught.value.where).startswith(__file__)
