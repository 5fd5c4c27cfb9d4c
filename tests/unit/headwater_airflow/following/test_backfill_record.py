"""Which backfill a cleared run makes again, and under which request."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headwater_airflow.following import backfill_record
from headwater_airflow.following.backfill_record import cleared_backfill
from headwater_airflow.following.request import request_id
from headwater_airflow.forms.backfill_form import BackfillRequest

FIRST = request_id("shop_backfill", "run")


def record(dataset: str, kind: str = "BACKFILL", status: str = "COMPLETED") -> dict[str, Any]:
    """A record of an operation on a table."""
    return {
        "origin": {"dataset_name": dataset},
        "details": {"operation_progress": {"type": kind, "status": status}},
    }


def cleared(
    monkeypatch: pytest.MonkeyPatch, records: list[Any], first: int = 4, switches: tuple[str, ...] = ()
) -> tuple[tuple[str, ...], str]:
    """The switches and the request of a run of two tables whose attempt ``first`` is the first since it was cleared."""
    monkeypatch.setattr(backfill_record, "events", lambda *_, **__: records)
    project: Any = SimpleNamespace(state_folder="state")
    backfill = BackfillRequest(("Orders", "items"), None, switches=switches)
    again, request = cleared_backfill(project, backfill, "shop_backfill", "run", first)
    return again.switches, request


BOTH = [record("orders"), record("ITEMS")]


def test_what_was_done_is_done_again_under_a_request_of_its_own(monkeypatch: pytest.MonkeyPatch):
    """Whoever clears a run of which all tables were filled wants them filled again; each clear has its own request."""
    switches, request = cleared(monkeypatch, BOTH)
    assert switches == ("again",)
    assert request not in (FIRST, cleared(monkeypatch, BOTH, first=5)[1])


def test_the_switch_is_there_once(monkeypatch: pytest.MonkeyPatch):
    """A form that says "again" itself has it once, in its place."""
    assert cleared(monkeypatch, BOTH, switches=("again", "allow_fewer_rows"))[0] == (
        "again",
        "allow_fewer_rows",
    )


@pytest.mark.parametrize(
    "records",
    [
        [],
        BOTH[:1],
        [record("orders"), record("items", status="FAILED")],
        [record("orders"), record("items", kind="MAINTENANCE")],
    ],
)
def test_what_is_not_done_goes_on_where_it_stood(monkeypatch: pytest.MonkeyPatch, records: list[Any]):
    """As long as a table is missing, a clear has the request of the run, so that what is done is recognised."""
    assert cleared(monkeypatch, records) == ((), FIRST)


def test_more_than_the_run_asked_for_may_be_done(monkeypatch: pytest.MonkeyPatch):
    """Records of other tables under the request make no difference."""
    assert cleared(monkeypatch, [*BOTH, record("others")])[0] == ("again",)


def test_a_run_that_was_never_cleared_has_its_own_request(monkeypatch: pytest.MonkeyPatch):
    """Its retries find what it has done."""
    assert cleared(monkeypatch, BOTH, first=1) == ((), FIRST)


@pytest.mark.parametrize("switch", ["dry_run", "then_stream"])
def test_what_writes_no_range_is_not_made_again(monkeypatch: pytest.MonkeyPatch, switch: str):
    """A dry run writes nothing, and a history that a stream goes on from is loaded once."""
    assert cleared(monkeypatch, BOTH, switches=(switch,)) == ((switch,), FIRST)
