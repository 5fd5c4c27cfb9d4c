"""Where batches ended, and what they wrote, as the event log and the table's commits say it together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headwater.checkpoints.flow_identity import FlowIdentity
from headwater.delta_log.table_history import FlowCommit
from headwater.doctor import known_positions as module
from headwater.doctor.known_positions import known_positions, rows_by_batch

OWN = FlowIdentity("orders", "silver")
Tell = Callable[..., None]


@pytest.fixture
def tell(monkeypatch: pytest.MonkeyPatch) -> Tell:
    """Let the event log have some records, by the flow's name, and the table some commits."""

    def says(records: dict[str, list[dict[str, Any]]], *commits: FlowCommit) -> None:
        monkeypatch.setattr(module, "events", lambda *_, flow, **__: records.get(flow, []))
        monkeypatch.setattr(module, "flow_commits", lambda *_: commits)

    return says


def record(batch: int | None, rows: int | None, ends: Any = None, *, epoch: int | None = 2) -> dict[str, Any]:
    """A batch's record."""
    progress = {"end_offsets": ends, "metrics": {} if rows is None else {"num_output_rows": rows}}
    return {"origin": {"batch_id": batch, "epoch": epoch}, "details": {"flow_progress": progress}}


def made(batch: int, rows: int | None, ends: Any = None, *, epoch: int = 2) -> FlowCommit:
    """A batch's commit."""
    return FlowCommit(1, epoch, ("orders.silver@2", batch), rows, ends)


def test_rows_of_batches(tell: Tell, tmp_path: Path):
    """The log has the first word, and the commits fill in what it lost; other epochs, and records of no batch, do not count."""
    records = [
        record(0, 5), record(1, 7), record(2, None), record(None, 9), record(4, 9, epoch=1), record(5, 9, epoch=None),
    ]  # fmt: skip
    tell({"silver": records}, made(1, 8), made(2, 3), made(3, None), made(6, 9, epoch=1))
    assert rows_by_batch(tmp_path, OWN, "silver", tmp_path, 2) == {0: 5, 1: 7, 2: 3}
    assert rows_by_batch(tmp_path, OWN, "silver", None, 2) == {0: 5, 1: 7}


def test_records_without_an_epoch(tell: Tell, tmp_path: Path):
    """They are of the first one."""
    tell({"silver": [record(5, 9, ["a"], epoch=None)]})
    assert rows_by_batch(tmp_path, OWN, "silver", None, 0) == {5: 9}
    assert known_positions(tmp_path, OWN, "silver", None, 0) == {5: ("a",)}


def test_positions_of_batches(tell: Tell, tmp_path: Path):
    """What the commit of a batch says goes before its record; a source that gave nothing yet has none."""
    records = [
        record(0, 1, ["a", None]),
        record(1, 1, ["b", "-"]),
        record(2, 1, []),
        record(3, 1, ["d", "null"]),
    ]
    tell(
        {"silver": records}, made(1, 1, ({"at": 4, "of": [1]}, "c")), made(2, 1), made(4, 1, ("e",), epoch=1)
    )
    assert known_positions(tmp_path, OWN, "silver", tmp_path, 2) == {
        0: ("a", None), 1: ('{"at":4,"of":[1]}', "c"), 3: ("d", None),
    }  # fmt: skip


def test_a_renamed_flow(tell: Tell, tmp_path: Path):
    """What was recorded under the former name counts, where that was in the same pipeline; the newer record is the last word."""
    state = tmp_path / "orders"
    tell({"old": [record(0, 1), record(1, 2)], "silver": [record(1, 3)]})
    former = FlowIdentity("orders", "old")
    assert rows_by_batch(state, former, "silver", None, 2) == {0: 1, 1: 3}
    assert rows_by_batch(state, FlowIdentity("other", "old"), "silver", None, 2) == {1: 3}
