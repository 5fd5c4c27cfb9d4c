"""The order of a table's flows goes along with the table."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.checkpoints.flow_identity import FlowIdentity, as_text, former_names, names_file
from headwater.graph.manifest import FlowEntry
from headwater.moves import moved_manifest, moving


def test_a_flow_that_waits_for_the_tables_own_query():
    """That query's flow has the name of the table, and waits are under the new one; other flows of it keep theirs."""
    place = {"old": SimpleNamespace(dataset="events"), "new": SimpleNamespace(dataset="clicks")}
    move = SimpleNamespace(source=place["old"], target=place["new"])
    live = FlowEntry(name="live", target="events", streaming=True, after_flows=("events", "history"))
    other = FlowEntry(name="late", target="other", streaming=True, after_flows=("events",))
    moved = moved_manifest._renamed(live, move)  # type: ignore[arg-type]
    assert (moved.name, moved.target, moved.after_flows) == ("live", "clicks", ("clicks", "history"))
    assert moved_manifest._renamed(other, move).after_flows == ("events",)  # type: ignore[arg-type]


def test_whose_readers_read_the_new_table():
    """Those of the pipeline that the table goes to, by the name that it has there; where it leaves, its readers lose nothing but it."""
    move: Any = SimpleNamespace(
        source=SimpleNamespace(dataset="events"), target=SimpleNamespace(dataset="clicks")
    )
    reader = FlowEntry(name="gold", target="gold", streaming=False, inputs=("events", "users"))
    table: Any = SimpleNamespace(location="shop/clicks")
    assert moved_manifest._renamed(reader, move).inputs == ("events", "users")
    assert moved_manifest._renamed(reader, move, table).inputs == ("clicks", "users")


def test_names_that_a_table_with_the_same_name_had(tmp_path: Path):
    """A flow that commits under its own names loses what stands there of an earlier one: it would be taken for that one's."""
    file = names_file(tmp_path)
    file.parent.mkdir(parents=True)
    file.write_text(
        as_text({"clicks/live": FlowIdentity("p", "gone"), "users/users": FlowIdentity("p", "people")})
    )
    move: Any = SimpleNamespace(target=SimpleNamespace(dataset="clicks"), flows={"live": "live"}, names={})
    moving._keep_names(move, tmp_path)
    assert former_names(tmp_path) == {"users/users": FlowIdentity("p", "people")}


def test_a_pipeline_that_no_update_has_resolved(monkeypatch: pytest.MonkeyPatch):
    """It has no manifest to write a new name into."""
    monkeypatch.setattr(moved_manifest, "seen_manifest", lambda _: (None, None))
    nothing: Any = None
    wish: Any = SimpleNamespace(source=SimpleNamespace(state_folder=None))
    moved_manifest.rewrite_manifests(nothing, wish, nothing)
