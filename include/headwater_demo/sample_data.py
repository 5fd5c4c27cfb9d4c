"""Sample data of a small shop with realistic faults: late, repeated, out of order, and sometimes broken."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from headwater.testing.shapes import broken, iso, product

_COUNTRIES = ("AT", "BR", "CA", "CH", "DE", "ES", "FR", "IT", "JP", "NL", "SE", "US")
_FIRST_NAMES = ("Ada", "Ben", "Chen", "Dora", "Emil", "Fatou", "Goran", "Hana", "Ivo", "Jun", "Kofi", "Lena")
_LAST_NAMES = (
    "Adler",
    "Baptiste",
    "Costa",
    "Duval",
    "Eriksson",
    "Fontana",
    "Garcia",
    "Huber",
    "Ito",
    "Jansen",
)
_FIRST_CUSTOMERS = 60

# Shares of the order messages.
_LATE, _INVALID, _MALFORMED, _DUPLICATED = 0.05, 0.02, 0.02, 0.03


class Message(NamedTuple):
    """One Kafka message."""

    key: str
    value: str


@dataclass(frozen=True)
class Counts:
    """The counts of a lot. Every message is counted in ``messages`` and in at most one of the four kinds below it.

    Attributes:
        messages: order messages in all.
        duplicates: messages that repeat an earlier one.
        malformed: messages that are not JSON, or not an order.
        invalid: orders that can't be true (nothing bought, a negative price).
        late: good orders of hours ago.
        clicks: lines of click files in all.
        malformed_clicks: lines that are not JSON.
        customers: rows of customer files.

    """

    messages: int = 0
    duplicates: int = 0
    malformed: int = 0
    invalid: int = 0
    late: int = 0
    clicks: int = 0
    malformed_clicks: int = 0
    customers: int = 0

    @property
    def orders(self) -> int:
        """The different, valid orders: what should be left in the end."""
        return self.messages - self.duplicates - self.malformed - self.invalid

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))


@dataclass(frozen=True)
class Lot:
    """Data of all three kinds, ready to be sent."""

    messages: tuple[Message, ...]
    clicks: dict[str, tuple[str, ...]]
    customers: tuple[dict[str, str], ...]
    counts: Counts


class SampleData:
    """Makes lots; the same seed and the same times give the same data.

    Args:
        seed: of the random numbers.
        run: goes into every id, so that two runs never use one id for two things.

    """

    def __init__(self, seed: int, run: str) -> None:
        self._random = random.Random(f"{seed} {run}")  # noqa: S311 - it only has to look like life
        self._run = run
        self._customers: list[dict[str, str]] = []
        self._numbers = 0

    def lot(self, messages: int, now: datetime) -> Lot:
        """Return a lot of about ``messages`` order messages, four times as many clicks, and some customers.

        Args:
            messages: how many orders are tried; repeated ones come on top.
            now: the latest time that an event has, with its time zone.

        """
        customers = self._some_customers(now)
        orders, counts = self._orders(messages, now)
        clicks, malformed = self._clicks(messages * 4, now)
        lines = sum(len(of_channel) for of_channel in clicks.values())
        rest = Counts(clicks=lines, malformed_clicks=malformed, customers=len(customers))
        return Lot(tuple(orders), clicks, tuple(customers), counts + rest)

    def _orders(self, tries: int, now: datetime) -> tuple[list[Message], Counts]:
        sent: list[Message] = []
        repeats: list[tuple[int, Message]] = []
        kinds = {"malformed": 0, "invalid": 0, "late": 0}
        for _ in range(tries):
            kind = self._random.choices(
                ("malformed", "invalid", "late", ""),
                (_MALFORMED, _INVALID, _LATE, 1 - _MALFORMED - _INVALID - _LATE),
            )[0]
            message = self._order(kind, now)
            if kind:
                kinds[kind] += 1
            elif self._random.random() < _DUPLICATED:
                repeats.append((len(sent) + self._random.randint(1, 50), message))
            sent.append(message)
        for place, message in repeats:
            sent.insert(place, message)
        return sent, Counts(messages=len(sent), duplicates=len(repeats), **kinds)

    def _order(self, kind: str, now: datetime) -> Message:
        name, price = product(self._random)
        order: dict[str, Any] = {
            "order_id": self._id("o"),
            "customer_id": self._random.choice(self._customers)["customer_id"],
            "product": name,
            "quantity": self._random.choice((1, 1, 1, 2, 2, 3)),
            "price": price,
            "ordered_at": self._moment(now, hours=kind == "late"),
        }
        if kind == "invalid":
            order |= self._random.choice(({"quantity": 0}, {"quantity": -1}, {"price": -price}))
        text = json.dumps(order)
        if kind == "malformed":
            text = broken(self._random, order, "order_id", "ordered_at")
        return Message(order["customer_id"], text)

    def _clicks(self, lines: int, now: datetime) -> tuple[dict[str, tuple[str, ...]], int]:
        of_channel: dict[str, list[str]] = {"web": [], "app": []}
        malformed = 0
        for _ in range(lines):
            click = {
                "click_id": self._id("k"),
                "customer_id": self._random.choice(self._customers)["customer_id"],
                "product": product(self._random)[0],
                "clicked_at": self._moment(now, hours=False),
            }
            text = json.dumps(click)
            if self._random.random() < _MALFORMED:
                malformed += 1
                text = text[: self._random.randint(10, 60)]
            of_channel[self._random.choice(("web", "web", "app"))].append(text)
        return {channel: tuple(texts) for channel, texts in of_channel.items()}, malformed

    def _some_customers(self, now: datetime) -> list[dict[str, str]]:
        """Many at first; later a few new ones, and a few with a new address."""
        new = [self._customer() for _ in range(3 if self._customers else _FIRST_CUSTOMERS)]
        changed = self._random.sample(self._customers, 2) if self._customers else []
        for number, customer in enumerate(changed):
            customer["email"] = f"{customer['customer_id']}.{self._numbers + number}@example.org"
        self._customers += new
        return [
            {**customer, "updated_at": now.isoformat(timespec="seconds")} for customer in (*new, *changed)
        ]

    def _customer(self) -> dict[str, str]:
        identity = self._id("c")
        name = f"{self._random.choice(_FIRST_NAMES)} {self._random.choice(_LAST_NAMES)}"
        country = self._random.choice(_COUNTRIES)
        return {"customer_id": identity, "name": name, "email": f"{identity}@example.org", "country": country}

    def _moment(self, now: datetime, *, hours: bool) -> str:
        ago = self._random.uniform(3600, 6 * 3600) if hours else self._random.expovariate(1 / 60)
        return iso(now - timedelta(seconds=ago))

    def _id(self, kind: str) -> str:
        self._numbers += 1
        return f"{kind}-{self._run}-{self._numbers}"
