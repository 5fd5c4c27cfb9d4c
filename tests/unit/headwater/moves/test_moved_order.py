"""The order of a table's flows goes along with the table."""

from __future__ import annotations

from types import SimpleNamespace

from headwater.graph.manifest import FlowEntry
from headwater.moves import moved_manifest


def test_a_flow_that_waits_for_the_tables_own_query():
    """That query's flow has the name of the table, and waits are under the new one; other flows of it keep theirs."""
    place = {"old": SimpleNamespace(dataset="events"), "new": SimpleNamespace(dataset="clicks")}
    move = SimpleNamespace(source=place["old"], target=place["new"])
    live = FlowEntry(name="live", target="events", streaming=True, after_flows=("events", "history"))
    other = FlowEntry(name="late", target="other", streaming=True, after_flows=("events",))
    moved = moved_manifest._renamed(live, move)  # type: ignore[arg-type]
    assert (moved.name, moved.target, moved.after_flows) == ("live", "clicks", ("clicks", "history"))
    assert moved_manifest._renamed(other, move).after_flows == ("events",)  # type: ignore[arg-type]
