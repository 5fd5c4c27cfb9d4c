"""Where a live stream stands, and what its table has of it: by this a backfill's rows meet the stream's without a gap."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.headwater_spark.update_parts import plan_batch
from tests.unit.headwater_spark.written_table import commit

from headwater.backfills.conditions import BackfillNotPossible, RangeNotReadYet
from headwater.backfills.live_position import delta_end, live_position
from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.definitions.source import SourceKind
from headwater.preflight.flow_start import FlowStart, StreamSource

SOURCE = StreamSource(SourceKind.DELTA, "t")


def start(tmp_path: Path, *sources: StreamSource) -> FlowStart:
    """A flow that reads a table, with a table of its own that has two commits."""
    table = tmp_path / "table"
    commit(table)
    checkpoint = FlowCheckpoint(tmp_path / "state" / "checkpoints" / "orders" / "f")
    state = FlowState(query_id="query")
    return FlowStart("p", "f", "orders", checkpoint, state, table, "t", sources=sources or (SOURCE,))


@pytest.mark.parametrize(
    ("marked", "ids", "batch"),
    [
        (1, {}, 1),  # batches without a row are in no table
        (0, {"query": 1}, 1),
        (0, {"p.f@0": 2}, 2),
        (2, {"query": 1}, 2),
        (None, {"query": 0}, 0),
        (0, {"p.f@1": 2, "other": 2}, 0),
    ],
)
def test_the_last_batch_counts_wherever_it_is_known(
    tmp_path: Path, marked: int | None, ids: dict[str, int], batch: int
):
    """Marked by Spark as done, or in the table already, under the query's id or the epoch's own: the later of them."""
    one = start(tmp_path)
    for number in range(3):
        done = marked is not None and number <= marked
        plan_batch(one.folder, number, {"reservoirVersion": 10 + number}, done=done)
    commit(tmp_path / "table", transactions=ids)
    position = live_position(one)
    assert position.ends == ({"reservoirVersion": 10 + batch},)
    assert (position.table_version, set(position.applications)) == (1, {"query", "p.f@0"})


def test_a_stream_that_has_not_run(tmp_path: Path):
    """A batch that is only planned is none: the stream brings its rows by itself."""
    one = start(tmp_path)
    plan_batch(one.folder, 0, {"reservoirVersion": 10})
    with pytest.raises(RangeNotReadYet, match="has not run yet"):
        live_position(one)


@pytest.mark.parametrize("lacks", [{"table": None}, {"table": Path("gone")}, {"sources": None}])
def test_a_flow_of_which_nothing_is_known(tmp_path: Path, lacks: dict[str, Any]):
    """Without its table, or a graph that says what it reads, it counts as one that has not run yet."""
    one = start(tmp_path)
    plan_batch(one.folder, 0, {"reservoirVersion": 10}, done=True)
    with pytest.raises(RangeNotReadYet, match="has not run yet"):
        live_position(replace(one, **lacks))


def test_a_position_that_belongs_to_no_source(tmp_path: Path):
    """Where the checkpoint has another number of positions than the flow has sources, none is guessed."""
    one = start(tmp_path, SOURCE, SOURCE)
    plan_batch(one.folder, 0, {"reservoirVersion": 10}, done=True)
    with pytest.raises(BackfillNotPossible, match="reads 2 streams"):
        live_position(one)
    with pytest.raises(BackfillNotPossible, match="reads 0 streams, and its checkpoint has 1"):
        live_position(replace(one, sources=()))


@pytest.mark.parametrize(
    ("position", "first"),
    [
        (None, 0),
        ({"reservoirVersion": 4, "index": -1, "isStartingVersion": False}, 4),
        ({"reservoirVersion": 4, "index": -1}, 4),
        ({"reservoirVersion": 4, "index": 0, "isStartingVersion": False}, None),
        ({"reservoirVersion": 4, "index": -1, "isStartingVersion": True}, None),
    ],
)
def test_only_between_versions_is_it_known_what_was_read(position: Any, first: int | None):
    """In the middle of a version, or of the first snapshot, nothing is said of its rows."""
    if first is not None:
        assert delta_end(position, SOURCE, "f") == first
        return
    with pytest.raises(RangeNotReadYet, match="middle of version 4"):
        delta_end(position, SOURCE, "f")
