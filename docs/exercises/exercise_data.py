"""The events of the exercises: the same ones each time."""

from datetime import UTC, datetime, timedelta

EVENT = "event_id STRING, user_id STRING, event_type STRING, page STRING, amount DOUBLE, event_timestamp TIMESTAMP"
USER = "user_id STRING, user_name STRING, country_code STRING"
TEN = datetime(2026, 1, 1, 10, tzinfo=UTC)


def event(number, minute, user="u1", kind="view", page="home", amount=1.0):
    """An event of the first of January, so many minutes after ten."""
    return {
        "event_id": f"e{number}",
        "user_id": user,
        "event_type": kind,
        "page": page,
        "amount": amount,
        "event_timestamp": TEN + timedelta(minutes=minute),
    }


def users(count):
    """So many users."""
    return [{"user_id": f"u{n}", "user_name": f"Name {n}", "country_code": "DE"} for n in range(count)]
