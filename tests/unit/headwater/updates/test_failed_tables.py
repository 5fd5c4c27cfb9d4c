"""What the last update left undone, and what reads it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.headwater.graph.test_update_plan import manifest

from headwater.event_log.details import FlowStatus
from headwater.event_log.flow_result import FlowResult
from headwater.updates.failed_tables import failed_tables

FLOWS = {"gold": "gold", "silver": "silver", "web": "bronze", "app": "bronze", "alone": "alone"}


def results(**states: str) -> list[FlowResult]:
    """What each flow did."""
    return [FlowResult("u", FLOWS.get(flow), flow, state) for flow, state in states.items()]


@pytest.mark.parametrize(
    ("states", "tables"),
    [
        ({"web": "COMPLETED", "silver": "COMPLETED"}, ()),
        ({"alone": "FAILED", "silver": "COMPLETED"}, ("alone",)),
        ({"app": "FAILED", "web": "COMPLETED", "silver": "COMPLETED"}, ("bronze", "silver", "gold")),
        ({"silver": "FAILED", "gold": "SKIPPED"}, ("silver", "gold")),
        ({"silver": "RUNNING"}, ("silver", "gold")),
        ({"silver": "STOPPED", "alone": "EXCLUDED"}, ("silver", "gold")),
        ({"gone": "FAILED"}, ()),
    ],
)
def test_what_did_not_complete_and_its_readers(states: dict[str, str], tables: tuple[str, ...]):
    """Failed, stopped, left out for another, killed; through views; in the order of the graph."""
    assert failed_tables(manifest(), results(**states)) == tables


@given(
    st.dictionaries(st.sampled_from(sorted(FLOWS)), st.sampled_from([str(status) for status in FlowStatus]))
)
def test_no_failure_is_forgotten_and_nothing_else_is_refreshed(states: dict[str, str]):
    """Every table of a flow that did not complete is there with all its readers, and each other one is there for a reader's sake."""
    graph = manifest()
    tables = failed_tables(graph, results(**states))
    left = {FLOWS[flow] for flow, state in states.items() if state not in ("COMPLETED", "EXCLUDED")}
    assert left <= set(tables)
    for name in [entry.name for entry in graph.outputs]:
        reads_one = not set(graph.upstream(name)).isdisjoint(tables)
        assert (name in tables) == (name in left or reads_one)
