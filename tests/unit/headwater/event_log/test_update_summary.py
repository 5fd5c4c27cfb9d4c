"""Updates as their records tell them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from headwater.event_log.details import UpdateState, create_update, update_progress
from headwater.event_log.update_summary import fold_updates

WHEN = datetime(2026, 1, 1, tzinfo=UTC)


def _record(details: dict[str, Any]) -> dict[str, Any]:
    origin = {"update_id": "u1", "request_id": "r1"}
    return {"origin": origin, "details": details, "timestamp": WHEN, "message": ""}


def test_the_time_of_the_request_outlives_later_records():
    """It stands in the first record alone."""
    requested = datetime(2026, 1, 1, 3, 4, 5, 678901, UTC)
    records = [create_update(requested_at=requested), update_progress(UpdateState.COMPLETED)]
    (summary,) = fold_updates(map(_record, records))
    assert (summary.requested_at, summary.state) == (requested, "COMPLETED")
    assert summary.as_dict()["requested_at"] == requested.isoformat()


@pytest.mark.parametrize("value", [None, "", "soon", 17, "2026-01-01T00:00:00", ["x"]])
def test_a_log_of_another_version_is_read(value: object):
    """A record without such a time, or with something else in its place, is an update whose request has no known time."""
    details = create_update()
    if value is not None:
        details["create_update"]["requested_at"] = value
    (summary,) = fold_updates([_record(details)])
    assert summary.requested_at is None
    assert summary.as_dict()["requested_at"] is None


def test_an_update_has_its_parameters():
    """They come from the record of the request, and stay while the update goes on; older logs have none."""
    records = [create_update(parameters={"day": "2026-01-31"}), update_progress(UpdateState.COMPLETED)]
    (summary,) = fold_updates(map(_record, records))
    assert (summary.parameters, summary.as_dict()["parameters"]) == (
        {"day": "2026-01-31"},
        {"day": "2026-01-31"},
    )
    (old,) = fold_updates([_record(create_update(parameters=["x"]))])
    assert old.parameters == {}
