"""What a form of a backfill may hold, and what it asks of a driver: anybody may post anything."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from headwater.backfills.backfill_range import RangeKind
from headwater.backfills.conditions import InvalidRange
from headwater.errors import HeadwaterError, UsageError
from headwater_airflow.forms.backfill_form import BackfillRequest, backfill_params, read_backfill

INTERVAL = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC))
BY_TIME = {"tables": ["orders"], "column": "at", "from": "2026-01-01", "to": "2026-01-03", "dry_run": False}


def read(interval: Any = None, **more: Any) -> BackfillRequest:
    """The request of a form by event time, with ``more`` in it."""
    return read_backfill({**BY_TIME, **more}, interval)


def test_a_form_that_is_not_complete_writes_nothing():
    """Where nothing is said of a dry run it is one; every other switch has to be set."""
    assert read_backfill({**BY_TIME, "dry_run": None} | {"dry_run": True}, None).switches == ("dry_run",)
    form = {name: value for name, value in BY_TIME.items() if name != "dry_run"}
    assert read_backfill(form, None).switches == ("dry_run",)
    assert read().switches == ()
    assert read(again=True, allow_fewer_rows=True).switches == ("again", "allow_fewer_rows")


def test_the_interval_of_a_run_fills_a_form_without_ends():
    """By event time alone, and only where neither end is filled in: one end by itself is a mistake."""
    chosen = read(INTERVAL, **{"from": "", "to": None}).chosen
    assert chosen is not None
    assert (chosen.start, chosen.end) == INTERVAL
    filled = read(INTERVAL).chosen
    assert filled is not None
    assert filled.end == datetime(2026, 1, 3, tzinfo=UTC)
    for more in ({"to": None}, {"from": ""}):
        with pytest.raises(InvalidRange, match="both ends"):
            read(INTERVAL, **more)
    for interval, kind in ((None, RangeKind.EVENT_TIME), (INTERVAL, RangeKind.VERSION)):
        with pytest.raises(InvalidRange, match="no ends"):
            read(interval, **{"from": None, "to": None, "range": str(kind)})


def test_all_history_has_no_range():
    """It is a range of its own; with one it is refused, whichever end is filled in."""
    assert read(then_stream=True, **{"from": None, "to": ""}).chosen is None
    for more in ({"from": None}, {"to": None}):
        with pytest.raises(UsageError, match="All history"):
            read(then_stream=True, **more)


def test_a_column_is_for_event_times():
    """The form keeps it filled in when somebody chooses another kind of range."""
    chosen = read(**{"range": "version", "from": "3", "to": "7"}).chosen
    assert chosen is not None
    assert (chosen.start, chosen.end, chosen.column) == (3, 7, None)
    condition = read(**{"range": "where", "where": "id > 3", "from": None, "to": None}).chosen
    assert condition is not None
    assert condition.condition == "id > 3"


def test_what_a_driver_is_asked():
    """Each value is joined to its option, so that none passes for an option; what is decided by itself is left out."""
    request = read(tables=["orders", "Orders", "orders"], mode="merge", keys=["id", "day"], again=True)
    assert request.arguments() == [
        "--tables=orders,Orders", "--range=event-time", "--from=2026-01-01T00:00:00+00:00",
        "--to=2026-01-03T00:00:00+00:00", "--column=at", "--mode=merge", "--keys=id,day", "--again",
    ]  # fmt: skip
    assert read(mode="auto").mode is None
    offsets = read(**{"range": "offset", "from": '{"t": {"0": 1}}', "to": '{"t": {"0": 5}}'})
    assert offsets.arguments()[1:4] == ["--range=offset", '--from={"t": {"0": 1}}', '--to={"t": {"0": 5}}']
    where = read(**{"range": "where", "where": "id > 3", "from": None, "to": None})
    assert where.arguments() == ["--tables=orders", "--where=id > 3"]


@pytest.mark.parametrize(
    "more",
    [
        {"tables": []},
        {"tables": "orders"},
        {"tables": ["a; drop"]},
        {"keys": ["a.b"], "mode": "merge"},
        {"range": "moon"},
        {"mode": "overwrite"},
        {"column": "a b"},
        {"from": 5},
        {"from": "x" * 100_001},
        {"again": "yes"},
        {"dry_run": 0},
        {"where": "id > 3"},
    ],
)
def test_what_has_no_meaning_is_refused(more: dict[str, Any]):
    """A value of another kind, a name that is none, or two that do not go together."""
    with pytest.raises(HeadwaterError) as refusal:
        read(**more)
    assert not refusal.value.transient


def test_the_form_begins_with_a_dry_run():
    """Tables that the DAG names are filled in, else the first; where there is none, nothing has to be."""
    params = backfill_params(["orders", "items"], (), "at")
    assert (params["tables"].value, params["dry_run"].value, params["column"].value) == (
        ["orders"],
        True,
        "at",
    )
    assert params["tables"].schema["minItems"] == 1
    assert backfill_params(["orders", "items"], ["items"], None)["tables"].value == ["items"]
    assert "minItems" not in backfill_params((), (), None)["tables"].schema
