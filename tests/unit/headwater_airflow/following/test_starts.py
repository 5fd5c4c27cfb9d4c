"""Which updates of a cleared run count: those since it was cleared last, over all attempts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headwater.event_log.update_summary import UpdateSummary
from headwater_airflow.following.starts import results_of_newest, starts_of

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("asked", "starts"),
    [
        ([], []), ([None], [[0]]), ([None, None], [[0, 1]]), ([0, 0], [[0, 1]]), ([0, 9], [[0], [1]]),
        ([0, None, 9, None, 9], [[0, 1], [2, 3, 4]]), ([None, 0, 9], [[0, 1], [2]]), ([0, None, 0], [[0, 1, 2]]),
    ],
)  # fmt: skip
def test_attempts_of_one_start(asked: list[int | None], starts: list[list[int]]):
    """Those that were asked for at the same moment; one that does not say so belongs to what was there before it."""
    updates = [
        UpdateSummary(
            str(number), "r", "FAILED", NOON, None, "",
            None if second is None else NOON + timedelta(seconds=second),
        )
        for number, second in enumerate(asked)
    ]  # fmt: skip
    assert [[int(update.update_id) for update in start] for start in starts_of(updates)] == starts


def records(update: str, asked: int, **flows: str) -> list[dict[str, Any]]:
    """The records of an update of the request, in which each flow came to a state."""
    about = {"update_id": update, "request_id": "r", "dataset_name": "orders", "epoch": 0}
    moment = (NOON + timedelta(seconds=asked)).isoformat()

    def record(number: int, flow: str | None, **details: Any) -> dict[str, Any]:
        return {
            "id": f"{update}-{number}", "timestamp": NOON + timedelta(seconds=asked + number), "message": "",
            "origin": {**about, "flow_name": flow}, "error": None, "details": details,
        }  # fmt: skip

    made = [record(0, None, create_update={"requested_at": moment})]
    states = enumerate(flows.items(), start=1)
    return made + [record(number, flow, flow_progress={"status": state}) for number, (flow, state) in states]


def test_what_each_flow_did():
    """The newest attempt counts; a flow that was left out as done has what it did in a start before, where it did anything."""
    log = [
        *records("u1", 0, a="COMPLETED", b="FAILED", c="FAILED"),
        *records("u2", 0, b="COMPLETED"),
        *records("u3", 60, a="EXCLUDED", b="EXCLUDED", d="EXCLUDED"),
        *records("u4", 60, c="COMPLETED"),
    ]
    results = {result.flow: (result.state, result.update_id) for result in results_of_newest(log)}
    assert results == {
        "a": ("COMPLETED", "u1"), "b": ("COMPLETED", "u2"), "c": ("COMPLETED", "u4"), "d": ("EXCLUDED", "u3"),
    }  # fmt: skip
    assert results_of_newest([]) == []
