"""Position against table: what the last run left, what is there now, and which of the two is behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.headwater.preflight.started import started
from tests.unit.headwater_spark.written_table import commit

from headwater.checkpoints.flow_role import FlowRole
from headwater.checkpoints.offsets import query_id
from headwater.preflight.checks import CHECKS, CHECKS_OF_ONCE_FLOWS, mended
from headwater.preflight.damage import Damage, Repair
from headwater.preflight.flow_start import FlowStart
from headwater.preflight.sink_checks import (
    checkpoint_was_lost,
    checkpoint_was_rewound,
    commits_behind_the_state,
    query_id_was_changed,
    table_was_dropped,
    table_was_recreated,
    table_was_rolled_back,
)

EPOCH = {"pipeline": "p", "flow": "orders", "epoch": 0}


def table_of(tmp_path: Path, version: int, metadata: Mapping[str, Any] | None = None) -> Path:
    """A table that ends at a version."""
    for _ in range(version + 1):
        commit(tmp_path / "table", metadata=metadata)
    return tmp_path / "table"


@pytest.mark.parametrize(
    ("left", "now", "sink_id", "back"),
    [
        (3, 3, "id", False),
        (3, 2, "id", True),
        (2, 3, "id", False),
        (None, 0, "id", False),
        (3, 2, "another", False),
    ],
)
def test_an_older_copy_of_the_table(tmp_path: Path, left: int | None, now: int, sink_id: str, back: bool):
    """It ends before the version that the last run left; of another table nothing was left."""
    state = {"sink_version": left, "sink_id": sink_id}
    start = started(tmp_path, table=table_of(tmp_path, now), state=state)
    assert bool(list(table_was_rolled_back(start))) is back


@pytest.mark.parametrize(
    ("role", "rewinds"), [(FlowRole.STREAM, True), (FlowRole.SNAPSHOTS, False), (FlowRole.ONCE, False)]
)
def test_an_older_copy_is_missed_by_flows_of_every_kind(tmp_path: Path, role: FlowRole, rewinds: bool):
    """What ran once, or took a snapshot, does not do so again; only a stream can be taken back to where the copy stands."""
    start = started(tmp_path, table=table_of(tmp_path, 2), state={"sink_version": 3}, role=role)
    (damage,) = table_was_rolled_back(start)
    assert (Repair.REWIND in damage.repairs) is rewinds
    assert Repair.FULL_REFRESH in damage.repairs
    assert all(table_was_rolled_back in checks for checks in (CHECKS, CHECKS_OF_ONCE_FLOWS))


@pytest.mark.parametrize(
    ("before", "now", "other"),
    [("id", "id", False), ("id", "another", True), (None, "id", False), ("id", None, False)],
)
def test_another_table(tmp_path: Path, before: str | None, now: str | None, other: bool):
    """Known by the id that Delta gave it."""
    start = replace(started(tmp_path, state={"sink_id": before}), sink_id=now)
    assert bool(list(table_was_recreated(start))) is other


@pytest.mark.parametrize(
    ("there", "marked", "sink_id", "dropped"),
    [
        (False, [0], None, True), (False, [], "id", True), (False, [], None, False),
        (True, [0], None, False),  # its log can't be read: another check says so
    ],
)  # fmt: skip
def test_a_table_that_is_gone(
    tmp_path: Path, there: bool, marked: list[int], sink_id: str | None, dropped: bool
):
    """Where the flow has written to it, by its state or by a batch that is done."""
    table = table_of(tmp_path, 0) if there else tmp_path / "table"
    start = started(tmp_path, marked, marked, table=table, state={"sink_id": sink_id})
    assert bool(list(table_was_dropped(replace(start, sink_id=None)))) is dropped


@pytest.mark.parametrize(
    ("planned", "marked", "written", "rewound"),
    [
        ([0, 1, 2], [0, 1], 2, False), ([0, 1, 2], [0, 1], 3, True), ([0, 1, 2], [0, 1, 2], 2, False),
        ([0, 1], [0, 1, 2], 2, False), ([0, 1], [0, 1, 2], 3, True), ([0], [], None, False), ([], [], 0, True),
    ],
)  # fmt: skip
def test_a_table_with_later_batches(
    tmp_path: Path, planned: list[int], marked: list[int], written: int | None, rewound: bool
):
    """The next rows would come under numbers that it has, and Delta would leave them out."""
    start = started(tmp_path, planned, marked, written=written)
    assert bool(list(checkpoint_was_rewound(start))) is rewound


def test_a_checkpoint_that_is_lost_as_a_whole_was_not_rewound(tmp_path: Path):
    """Another check says that, with another remedy."""
    assert list(checkpoint_was_rewound(started(tmp_path, written=4, query=None))) == []


@pytest.mark.parametrize(
    ("epoch", "in_log", "planned", "sink_id", "lost"),
    [
        (0, 0, False, None, True),  # the flow's state does not say it, and the table does
        (0, None, False, "id", True), (0, None, False, None, False), (0, 0, True, "id", False),
        (1, 0, False, None, False), (1, 1, True, "id", False),
    ],
)  # fmt: skip
def test_a_checkpoint_that_is_gone(
    tmp_path: Path, epoch: int, in_log: int | None, planned: bool, sink_id: str | None, lost: bool
):
    """The table has rows of this epoch, or of a later one than is kept, and the checkpoint is empty: all would be written again."""
    table = table_of(tmp_path, 0, None if in_log is None else {**EPOCH, "epoch": in_log})
    state = {"sink_id": sink_id, "epoch": epoch}
    start = started(
        tmp_path, [0] if planned else [], table=table, query="q" if planned else None, state=state
    )
    assert bool(list(checkpoint_was_lost(start))) is lost


@pytest.mark.parametrize(("in_log", "lost"), [(0, False), (1, True), (2, True)])
def test_a_state_that_is_gone(tmp_path: Path, in_log: int, lost: bool):
    """Then the newest epoch that is kept is the live one: the table must not have rows of a later one."""
    table = table_of(tmp_path, 0, {**EPOCH, "epoch": in_log})
    start = started(tmp_path, [0], table=table)
    start.checkpoint.state_file.unlink()
    assert bool(list(checkpoint_was_lost(start))) is lost


@pytest.mark.parametrize(
    ("recorded", "now", "changed"),
    [("q", "q", False), ("q", "other", True), (None, "other", False), ("q", None, False)],
)
def test_another_id_of_the_query(tmp_path: Path, recorded: str | None, now: str | None, changed: bool):
    """It is put back on request alone: the checkpoint may be another flow's."""
    start = started(tmp_path, [0], query=now, state={"query_id": recorded})
    damages = list(query_id_was_changed(start))
    assert bool(damages) is changed
    if changed:
        with pytest.raises(type(damages[0].error)):
            mended(damages)
        assert query_id(start.folder) == now
        assert damages[0].mend is not None
        damages[0].mend()
        assert query_id(start.folder) == recorded


@pytest.mark.parametrize(
    ("left", "head", "sink_id", "since"),
    [(2, 3, "id", 2), (3, 3, "id", None), (None, 0, "id", -1), (None, 0, None, -1), (2, 3, "another", None)],
)
def test_commits_that_the_state_does_not_know(
    tmp_path: Path, left: int | None, head: int, sink_id: str | None, since: int | None
):
    """Those behind the version that the last run left, the first one too where there was no run; none of another table."""
    state = {"sink_version": left, "sink_id": sink_id}
    start = started(tmp_path, table=table_of(tmp_path, head), state=state)
    behind = commits_behind_the_state(start)
    assert (None if behind is None else behind[4]) == since


@pytest.mark.parametrize(
    ("blocks", "mends", "unasked", "starts"),
    [
        (True, True, True, True), (True, True, False, False), (True, False, True, False),
        (False, False, True, True), (False, True, False, True),
    ],
)  # fmt: skip
def test_what_keeps_a_flow_from_starting(
    tmp_path: Path, blocks: bool, mends: bool, unasked: bool, starts: bool
):
    """A finding that blocks and does not mend itself; what is mended on request alone is left as it is."""
    (known,) = table_was_recreated(replace(started(tmp_path), sink_id="another"))
    done: list[str] = []
    repair = (lambda: done.append("done") or "done") if mends else None
    damage = Damage(known.error, mend=repair, unasked=unasked, blocks=blocks)
    if not starts:
        with pytest.raises(type(known.error)):
            mended([damage])
        assert done == []
        return
    assert [text for _, text in mended([damage])] == (["done"] if mends and unasked else [])


@pytest.mark.parametrize(
    ("ids", "written"),
    [
        ({"q": 4, "p.orders@0": 2}, 4),
        ({"q": 1, "p.orders@0": 6}, 6),
        ({"in the state": 5}, 5),
        ({"p.orders@1": 9}, None),
    ],
)
def test_the_last_batch_that_the_table_has(tmp_path: Path, ids: dict[str, int], written: int | None):
    """Under any of the ids of this epoch: the query's, by the checkpoint or the state, and that of foreachBatch."""
    table = tmp_path / "table"
    commit(table)
    commit(table, transactions=ids)
    start: FlowStart = started(tmp_path, [0], table=table, state={"query_id": "in the state"})
    del start.__dict__["written"]
    assert start.written == written
