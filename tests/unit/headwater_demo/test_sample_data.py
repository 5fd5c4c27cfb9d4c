"""The sample data is what its counts say."""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from headwater_demo.sample_data import Counts, Lot, SampleData

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def lot() -> Lot:
    """A lot large enough to hold every kind."""
    return SampleData(4, "run").lot(3000, NOW)


def parsed(text: str) -> dict:
    """Read a message as an order; empty if it is not one."""
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def readable_orders(lot: Lot) -> list[dict]:
    """Keep the orders that have an id and a time."""
    orders = [parsed(message.value) for message in lot.messages]
    return [order for order in orders if "order_id" in order and order["ordered_at"] != "yesterday"]


def test_the_same_seed_gives_the_same_lot(lot: Lot):
    """Two generators with one seed and one time agree in every byte."""
    assert SampleData(4, "run").lot(3000, NOW) == lot


def test_every_kind_is_there(lot: Lot):
    """Late, duplicate, malformed and invalid records are all among the data."""
    counts = lot.counts
    assert min(counts.duplicates, counts.malformed, counts.invalid, counts.late, counts.malformed_clicks) > 10


def test_messages_are_counted(lot: Lot):
    """The counts of messages, malformed and invalid ones, and duplicates are those of the data."""
    orders = readable_orders(lot)
    wrong = [order for order in orders if order["quantity"] <= 0 or order["price"] <= 0]
    times = Counter(order["order_id"] for order in orders)
    assert len(lot.messages) == lot.counts.messages
    assert len(lot.messages) - len(orders) == lot.counts.malformed
    assert len(wrong) == lot.counts.invalid
    assert times.total() - len(times) == lot.counts.duplicates
    assert len(times) - len(wrong) == lot.counts.orders


def test_late_and_out_of_order(lot: Lot):
    """Late orders are hours old, no more than six; the others don't come in the order of their times."""
    moments = [datetime.fromisoformat(order["ordered_at"]) for order in readable_orders(lot)]
    late = {moment for moment in moments if NOW - moment >= timedelta(hours=1)}
    assert len(late) == lot.counts.late
    assert NOW - min(moments) <= timedelta(hours=6)
    assert moments != sorted(moments)


def test_clicks_are_counted(lot: Lot):
    """The lines of both channels add up, and so do those that are not JSON."""
    lines = [line for of_channel in lot.clicks.values() for line in of_channel]
    assert len(lines) == lot.counts.clicks
    assert sum(not parsed(line) for line in lines) == lot.counts.malformed_clicks


def test_customers_grow_and_change():
    """A second lot brings new customers and new addresses of known ones; countries stay."""
    data = SampleData(4, "run")
    first = {row["customer_id"]: row for row in data.lot(10, NOW).customers}
    second = data.lot(10, NOW + timedelta(minutes=1)).customers
    changed = [row for row in second if row["customer_id"] in first]
    assert 0 < len(changed) < len(second)
    for row in changed:
        assert row["email"] != first[row["customer_id"]]["email"]
        assert row["country"] == first[row["customer_id"]]["country"]
        assert row["updated_at"] > first[row["customer_id"]]["updated_at"]


def test_two_runs_share_no_id(lot: Lot):
    """Ids carry the run, so that a second demo never repeats those of the first."""
    others = SampleData(4, "another").lot(100, NOW)
    ids = {order["order_id"] for order in readable_orders(lot)}
    assert ids.isdisjoint(order["order_id"] for order in readable_orders(others))


def test_counts_add_up():
    """Adding counts adds every field."""
    assert Counts(messages=2, late=1) + Counts(messages=3, clicks=4) == Counts(messages=5, late=1, clicks=4)
