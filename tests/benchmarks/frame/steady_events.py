"""Events at a steady pace, from a thread, for what is measured while they come."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from headwater_demo.kafka_broker import KafkaBroker


class SteadyEvents:
    """Sends events 0, 1, 2 ... at their times until the block ends. One that is late is sent at once; none is left out.

    Args:
        send: takes an event's number.
        per_second: how many.

    """

    def __init__(self, send: Callable[[int], object], per_second: float) -> None:
        self._send, self._per_second = send, per_second
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="steady-events")
        self.sent = 0
        self.error: Exception | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        if self.error is not None and error is None:
            raise self.error

    def _run(self) -> None:
        began = time.monotonic()
        try:
            while not self._ended.wait(max(0.0, began + self.sent / self._per_second - time.monotonic())):
                self._send(self.sent)
                self.sent += 1
        except Exception as error:
            self.error = error


class EventSender:
    """Sends events to a topic; each has its number and the time at which it was sent (seconds since 1970)."""

    def __init__(self, broker: KafkaBroker, topic: str, partitions: int = 2) -> None:
        from confluent_kafka import Producer

        broker.create_topic(topic, partitions)
        self._topic = topic
        self._producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0})

    def send(self, number: int) -> None:
        """Hand an event to the producer, which sends it at once."""
        event = {"id": number, "customer": f"c{number % 977}", "amount": number % 2000 / 8 + 1, "sent": time.time()}  # fmt: skip
        self._producer.produce(self._topic, json.dumps(event).encode())
        self._producer.poll(0)

    def flush(self) -> None:
        """Return when the broker has all."""
        assert self._producer.flush(30) == 0
