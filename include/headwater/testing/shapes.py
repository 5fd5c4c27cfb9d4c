"""What synthetic events look like: one function a shape, from random numbers, an id and a time to a record."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

PRODUCTS = {
    "espresso beans": 14.9,
    "filter papers": 3.5,
    "grinder": 129.0,
    "kettle": 59.0,
    "milk jug": 18.5,
    "mug": 11.0,
    "scale": 34.9,
    "travel press": 27.0,
}
_PAGES = ("/", "/search", "/product", "/cart", "/checkout")
_AGENTS = ("Mozilla/5.0 (X11; Linux)", "Mozilla/5.0 (Mobile; Android 16)", "Mozilla/5.0 (Tablet; iPad)")
_USERS = 200


@dataclass(frozen=True)
class Shape:
    """A kind of event. ``id_column`` and ``time_column`` name what identifies it and when it happened."""

    id_column: str
    time_column: str
    schema: str
    record: Callable[[random.Random, str, str], dict[str, Any]]


def product(numbers: random.Random) -> tuple[str, float]:
    """A product and its price; the first ones sell best."""
    weights = [1 / rank for rank in range(1, len(PRODUCTS) + 1)]
    return numbers.choices(list(PRODUCTS.items()), weights)[0]


def iso(moment: datetime) -> str:
    """A time as the events write it: ISO 8601 with milliseconds and the zone."""
    return moment.isoformat(timespec="milliseconds")


def broken(numbers: random.Random, record: Mapping[str, Any], id_column: str, time_column: str) -> str:
    """A text in place of a record's JSON that can't be read as one: cut off, no JSON, no id, no time."""
    text = json.dumps(record)
    without_id = json.dumps({key: value for key, value in record.items() if key != id_column})
    strange_time = json.dumps({**record, time_column: "yesterday"})
    return numbers.choice((text[: len(text) // 2], "<event/>", "", "[]", without_id, strange_time))


def _order(numbers: random.Random, identity: str, moment: str) -> dict[str, Any]:
    name, price = product(numbers)
    return {
        "order_id": identity,
        "customer_id": f"c-{numbers.randrange(_USERS)}",
        "product": name,
        "quantity": numbers.choice((1, 1, 1, 2, 2, 3)),
        "price": price,
        "ordered_at": moment,
    }


def _click(numbers: random.Random, identity: str, moment: str) -> dict[str, Any]:
    return {
        "event_id": identity,
        "user_id": f"u-{numbers.randrange(_USERS)}",
        "event_type": numbers.choice(("view", "view", "view", "click", "purchase")),
        "page": numbers.choice(_PAGES),
        "user_agent": numbers.choice(_AGENTS),
        "event_time": moment,
    }


def _session(numbers: random.Random, identity: str, moment: str) -> dict[str, Any]:
    pages = numbers.randint(1, 20)
    return {
        "session_id": identity,
        "user_id": f"u-{numbers.randrange(_USERS)}",
        "started_at": moment,
        "page_views": pages,
        "properties": {
            "duration_seconds": pages * numbers.randint(5, 60),
            "channel": numbers.choice(("web", "app")),
        },
    }


SHAPES: Mapping[str, Shape] = {
    "orders": Shape(
        "order_id",
        "ordered_at",
        "order_id STRING, customer_id STRING, product STRING, quantity INT, price DECIMAL(10, 2), ordered_at TIMESTAMP",
        _order,
    ),
    "clicks": Shape(
        "event_id",
        "event_time",
        "event_id STRING, user_id STRING, event_type STRING, page STRING, user_agent STRING, event_time TIMESTAMP",
        _click,
    ),
    "sessions": Shape(
        "session_id",
        "started_at",
        "session_id STRING, user_id STRING, started_at TIMESTAMP, page_views INT, "
        "properties STRUCT<duration_seconds: INT, channel: STRING>",
        _session,
    ),
}
