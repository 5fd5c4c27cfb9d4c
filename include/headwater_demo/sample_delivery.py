"""Sends sample data where the pipeline looks for it: a Kafka topic and two landing folders."""

from __future__ import annotations

import csv
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Self

from headwater.errors import HeadwaterError
from headwater_demo.sample_data import Counts, Lot, SampleData

TOPIC = "orders"
_CHANNELS = ("web", "app")
_FLUSH_SECONDS = 30


class DeliveryFailed(HeadwaterError):
    """Kafka did not take the sample data."""

    condition = "SAMPLE_DATA_NOT_DELIVERED"
    transient = True


@dataclass(frozen=True)
class Destination:
    """Where the shop's data goes: the broker's address, and the folder in which files land."""

    bootstrap_servers: str
    landing: Path

    def prepare(self) -> None:
        """Make the landing folders: a stream can't start on a folder that is not there."""
        for channel in _CHANNELS:
            (self.landing / "clicks" / channel).mkdir(parents=True, exist_ok=True)
        (self.landing / "customers").mkdir(parents=True, exist_ok=True)

    def deliver(self, lot: Lot) -> Counts:
        """Send a lot; customers first, as orders name them.

        Raises:
            DeliveryFailed: if Kafka did not acknowledge every message.

        """
        self.prepare()
        _land(self.landing / "customers", "csv", _as_csv(lot.customers))
        for channel, lines in lot.clicks.items():
            _land(self.landing / "clicks" / channel, "json", "".join(f"{line}\n" for line in lines))
        self._send(lot)
        return lot.counts

    def _send(self, lot: Lot) -> None:
        from confluent_kafka import Producer

        refused: list[str] = []
        # Idempotent, so that the client's own retries can't add messages that were not counted.
        producer = Producer(
            {"bootstrap.servers": self.bootstrap_servers, "enable.idempotence": True, "log_level": 0}
        )
        for message in lot.messages:
            producer.produce(
                TOPIC,
                key=message.key,
                value=message.value,
                on_delivery=lambda error, _: refused.append(str(error)) if error else None,
            )
        left = producer.flush(_FLUSH_SECONDS)
        if left or refused:
            raise DeliveryFailed(
                f"{left + len(refused)} of {len(lot.messages)} messages did not reach Kafka",
                where=self.bootstrap_servers,
                remedy=refused[0] if refused else "is the broker running?",
            )


class ArrivingData:
    """Sends a small lot every few seconds from a thread, until it is left."""

    def __init__(
        self, data: SampleData, destination: Destination, *, seconds: float, on_lot: Callable[[Counts], None]
    ) -> None:
        self._data = data
        self._destination = destination
        self._seconds = seconds
        self._on_lot = on_lot
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._run, name="arriving data", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._thread.join(_FLUSH_SECONDS)

    def _run(self) -> None:
        while not self._enough.wait(self._seconds):
            try:
                self._on_lot(self._destination.deliver(self._data.lot(20, datetime.now(UTC))))
            except DeliveryFailed:
                # The broker is going down, or comes back; what did not arrive is not counted.
                continue


def _as_csv(rows: tuple[dict[str, str], ...]) -> str:
    text = StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _land(folder: Path, kind: str, text: str) -> None:
    """Write under a hidden name, then rename: a reader never sees half a file."""
    name = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}.{kind}"
    hidden = folder / f".{name}"
    hidden.write_text(text)
    hidden.rename(folder / name)
