"""What a declaration of AUTO CDC may say."""

from __future__ import annotations

import re
from typing import Any

import pytest

from headwater import pipelines as dp
from headwater.definitions.change_conditions import InvalidChangeFlow
from headwater.graph.registry import Registry, registering


def declared(**arguments: Any) -> None:
    """Declare a flow of changes."""
    with registering(Registry(catalog=None, schema="shop")):
        dp.create_auto_cdc_flow(target="t", source="cdc", keys=["id"], sequence_by="version", **arguments)


def following(**arguments: Any) -> None:
    """Declare a flow of snapshots."""
    with registering(Registry(catalog=None, schema="shop")):
        dp.create_auto_cdc_from_snapshot_flow(target="t", **{"keys": ["id"], **arguments})


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({}, "snapshots come from source or from snapshot_and_version.*Give one of the two"),
        ({"source": "s", "snapshot_and_version": "s"}, "Give one of the two"),
        ({"source": 7}, "not from int.*Write source="),
        ({"source": " "}, "not from str"),
        ({"source": "s", "stored_as_scd_type": 3}, "=3 is not a type that is kept.*Say 1 or 2"),
        ({"source": "s", "stored_as_scd_type": "bitemporal"}, "is not a type that is kept.*Say 1 or 2"),
    ],
)
def test_where_snapshots_come_from(arguments: dict[str, Any], what: str):
    """From one source, a dataset or a function; their versions make a history, and no second one."""
    with pytest.raises(InvalidChangeFlow) as caught:
        following(**arguments)
    assert str(caught.value.where).startswith(__file__)
    assert re.search(what, f"{caught.value.what} {caught.value.remedy}"), caught.value


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"system_sequence_by": "version"}, "go together.*Give both"),
        ({"stored_as_scd_type": 2, "system_sequence_by": "version"}, "go together.*Give both"),
        ({"stored_as_scd_type": "bitemporal"}, "go together.*Give both"),
        ({"stored_as_scd_type": 3}, "=3 is not a type that is kept.*Say 1, 2 or"),
        ({"stored_as_scd_type": 2, "apply_as_truncates": "op = 'T'"}, "apply_as_truncates needs type 1"),
    ],
)
def test_kinds_of_targets(arguments: dict[str, Any], what: str):
    """A bitemporal target has both sequences, and no other has two; a type that is not kept, and a history that is emptied, are refused."""
    with pytest.raises(InvalidChangeFlow) as caught:
        declared(**arguments)
    assert str(caught.value.where).startswith(__file__)
    assert re.search(what, f"{caught.value.what} {caught.value.remedy}"), caught.value
