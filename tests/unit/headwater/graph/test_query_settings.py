"""A query runs with the settings of its flow and of the views in it, and a conflict is refused by name."""

from __future__ import annotations

import pytest

from headwater.definitions.flow import Flow
from headwater.errors import UnsupportedArgument
from headwater.graph.query_settings import query_settings


def flow(name: str, **settings: str) -> Flow:
    """A flow with settings."""
    return Flow(name, name, lambda: None, spark_conf=settings)


def test_settings_of_views_are_their_readers():
    """What a view sets is in force in the query that reads it; equal values are no conflict."""
    views = [flow("v", a="1", b="2"), flow("w", b="2", c="3"), flow("unread", a="9")]
    reads = {"t": ["v", "table"], "v": ["w"], "w": ["v"], "table": ["unread"]}
    assert query_settings(flow("t", a="1", d="4"), views, reads) == {"a": "1", "b": "2", "c": "3", "d": "4"}
    assert query_settings(flow("t"), [], {}) == {}


@pytest.mark.parametrize(
    ("reader", "views", "names"),
    [
        (flow("t", a="1"), [flow("v", a="2")], ("v", "t")),
        (flow("t"), [flow("v", a="1"), flow("w", a="2")], ("w", "v")),
    ],
)
def test_a_conflict(reader: Flow, views: list[Flow], names: tuple[str, str]):
    """Two values of one setting in one query: refused, and both are named."""
    with pytest.raises(UnsupportedArgument) as caught:
        query_settings(reader, views, {"t": ["v", "w"]})
    assert all(repr(name) in caught.value.what for name in (*names, "t"))
    assert caught.value.remedy
