"""Synthetic events, seeded, that carry their own labels: late, duplicate, out of order, malformed.

So what a stream should make of them can be computed before it runs. The events come in batches, and are late with
regard to a watermark that moves as Spark's does: after each batch, to the latest time seen in it less the delay.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from headwater.errors import UsageError
from headwater.testing.shapes import SHAPES, broken, iso

_START = datetime(2026, 1, 1, tzinfo=UTC)
_TICK = timedelta(milliseconds=1)


@dataclass(frozen=True)
class SyntheticEvent:
    """One event, and the truth about it.

    Attributes:
        record: the event as a dict; of a malformed one, what it was before it was broken.
        text: what is sent: the record as JSON, or something that is not.
        identity: its id; a duplicate has that of the event it repeats.
        event_time: when it happened.
        arrival_time: when it is sent; order of arrival is the order of the batches.
        late: it is older than the watermark that holds when its batch begins, so a stateful query drops it.
        out_of_order: an event that arrived before it happened after it, and it is not late.
        duplicate: it repeats an earlier event, text for text.
        malformed: its text can't be read as such an event.

    """

    record: dict[str, Any]
    text: str
    identity: str
    event_time: datetime
    arrival_time: datetime
    late: bool = False
    out_of_order: bool = False
    duplicate: bool = False
    malformed: bool = False


@dataclass(frozen=True)
class SyntheticEvents:
    """Batches of events, in the forms in which a test sends them."""

    batches: tuple[tuple[SyntheticEvent, ...], ...]

    def __iter__(self) -> Iterator[SyntheticEvent]:
        return (event for batch in self.batches for event in batch)

    @property
    def readable(self) -> list[SyntheticEvent]:
        """The events that are not malformed."""
        return [event for event in self if not event.malformed]

    @property
    def distinct(self) -> list[SyntheticEvent]:
        """The readable events, each once."""
        return [event for event in self.readable if not event.duplicate]

    @property
    def in_time(self) -> list[SyntheticEvent]:
        """The readable events, each once, without the late ones: what a stateful query with the watermark keeps."""
        return [event for event in self.distinct if not event.late]

    def count(self, kind: str) -> int:
        """How many events are ``late``, ``out_of_order``, ``duplicate`` or ``malformed``."""
        return sum(bool(getattr(event, kind)) for event in self)

    def texts(self) -> list[list[str]]:
        """The texts of each batch: lines of a file, or values of Kafka messages."""
        return [[event.text for event in batch] for batch in self.batches]

    def messages(self) -> list[list[dict[str, Any]]]:
        """The Kafka messages of each batch: id as key, text as value, arrival as timestamp."""
        return [
            [{"key": e.identity, "value": e.text, "timestamp": e.arrival_time} for e in batch]
            for batch in self.batches
        ]

    def rows(self) -> list[list[dict[str, Any]]]:
        """The records of each batch, for a dataset that has their columns; malformed ones are left out."""
        return [[event.record for event in batch if not event.malformed] for batch in self.batches]


class EventGenerator:
    """Makes events; the same arguments give the same events.

    Args:
        shape: ``orders``, ``clicks`` or ``sessions``; ``generator.schema`` has its columns as DDL text.
        seed: of the random numbers.
        delay: the watermark's delay that lateness is meant for.
        late, duplicate, out_of_order, malformed: shares of the events, 0 to 1. The first batch has no late ones.

    """

    def __init__(
        self,
        shape: str = "clicks",
        *,
        seed: int,
        delay: timedelta = timedelta(minutes=10),
        late: float = 0.05,
        duplicate: float = 0.05,
        out_of_order: float = 0.2,
        malformed: float = 0.03,
    ) -> None:
        if shape not in SHAPES:
            raise UsageError(f"There is no shape {shape!r}.", remedy=f"There are: {', '.join(SHAPES)}.")
        if delay < timedelta(seconds=1) or not 0 <= late + duplicate + malformed <= 1:
            raise UsageError(
                "The delay must be a second or more, and the shares of late, duplicate and malformed events 1 at most."
            )
        self._shape = SHAPES[shape]
        self._delay = delay
        self._shares = (late, duplicate, malformed, 1 - late - duplicate - malformed)
        self._out_of_order = out_of_order
        self._random = random.Random(f"{shape} {seed}")  # noqa: S311 - it only has to look like life
        self._numbers = 0

    @property
    def schema(self) -> str:
        """The columns of a record, as DDL text."""
        return self._shape.schema

    def batches(
        self, batches: int, events: int, *, start: datetime = _START, step: timedelta | None = None
    ) -> SyntheticEvents:
        """Make events.

        Args:
            batches: how many batches.
            events: how many events in each.
            start: when the first batch begins, with its time zone.
            step: the time that a batch covers; twice the delay if left out.

        """
        step = step or 2 * self._delay
        made: list[tuple[SyntheticEvent, ...]] = []
        watermark: datetime | None = None
        latest = start
        for number in range(batches):
            begins = start + number * step
            batch = self._batch(events, begins, step, watermark, latest, [e for done in made for e in done])
            made.append(batch)
            # As Spark has it: times of all rows that a query could read, late ones too, after the batch.
            latest = max([latest, *(event.event_time for event in batch if not event.malformed)])
            watermark = latest - self._delay
        return SyntheticEvents(tuple(made))

    def _batch(
        self,
        count: int,
        begins: datetime,
        step: timedelta,
        watermark: datetime | None,
        latest: datetime,
        earlier: Sequence[SyntheticEvent],
    ) -> tuple[SyntheticEvent, ...]:
        made: list[SyntheticEvent] = []
        for place in range(count):
            arrival = begins + step * (place + 1) / count
            kind = self._random.choices(("late", "duplicate", "malformed", ""), self._shares)[0]
            if kind == "late" and watermark is not None:
                made.append(self._late(arrival, watermark))
            elif kind == "duplicate" and (repeated := self._repeated(made, earlier, watermark)) is not None:
                made.append(_again(repeated, arrival, latest))
            else:
                made.append(self._new(arrival, begins, latest, watermark, malformed=kind == "malformed"))
            if not made[-1].malformed:
                latest = max(latest, made[-1].event_time)
        return tuple(made)

    def _new(
        self,
        arrival: datetime,
        begins: datetime,
        latest: datetime,
        watermark: datetime | None,
        *,
        malformed: bool,
    ) -> SyntheticEvent:
        moment = arrival
        if self._random.random() < self._out_of_order:
            # Never so old that a watermark could have passed it.
            oldest = watermark + _TICK if watermark is not None else begins
            moment = _to_the_millisecond(max(arrival - self._random.random() * self._delay, oldest))
        else:
            moment = _to_the_millisecond(arrival)
        identity, record = self._record(moment)
        text = json.dumps(record)
        if malformed:
            text = broken(self._random, record, self._shape.id_column, self._shape.time_column)
        return SyntheticEvent(
            record, text, identity, moment, arrival,
            out_of_order=moment < latest and not malformed, malformed=malformed,
        )  # fmt: skip

    def _late(self, arrival: datetime, watermark: datetime) -> SyntheticEvent:
        moment = _to_the_millisecond(watermark - timedelta(seconds=1) - self._random.random() * self._delay)
        identity, record = self._record(moment)
        return SyntheticEvent(record, json.dumps(record), identity, moment, arrival, late=True)

    def _repeated(
        self, made: Sequence[SyntheticEvent], earlier: Sequence[SyntheticEvent], watermark: datetime | None
    ) -> SyntheticEvent | None:
        """An event to repeat: readable, and young enough that a query with the watermark still knows it."""
        repeatable = [
            event for event in (*earlier, *made)
            if not (event.malformed or event.late or event.duplicate)
            and (watermark is None or event.event_time > watermark)
        ]  # fmt: skip
        return self._random.choice(repeatable) if repeatable else None

    def _record(self, moment: datetime) -> tuple[str, dict[str, Any]]:
        self._numbers += 1
        identity = f"e-{self._numbers}"
        return identity, self._shape.record(self._random, identity, iso(moment))


def _again(event: SyntheticEvent, arrival: datetime, latest: datetime) -> SyntheticEvent:
    return SyntheticEvent(
        event.record, event.text, event.identity, event.event_time, arrival,
        duplicate=True, out_of_order=event.event_time < latest,
    )  # fmt: skip


def _to_the_millisecond(moment: datetime) -> datetime:
    """The time to the millisecond, which is what the text says."""
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
