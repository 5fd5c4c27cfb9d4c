"""What a target of AUTO CDC may say of itself."""

from __future__ import annotations

import pytest

from headwater import pipelines as dp
from headwater.definitions.change_conditions import InvalidChangeFlow
from headwater.graph.change_targets import RETENTION_PROPERTY, check_retention
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
