"""Synthetic events are what they say they are."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.errors import UsageError
from headwater.testing import EventGenerator
from headwater.testing.shapes import SHAPES

DELAY = timedelta(minutes=10)


def readable(text: str, shape: str) -> bool:
    """Whether a text is an event of its shape."""
    try:
        value = json.loads(text)
        return SHAPES[shape].id_column in value and bool(
            datetime.fromisoformat(value[SHAPES[shape].time_column])
        )
    except (ValueError, KeyError, TypeError):
        return False


@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_same_seed_same_events(shape):
    """The same arguments give the same events, another seed gives others."""
    first = EventGenerator(shape, seed=1).batches(3, 50)
    assert EventGenerator(shape, seed=1).batches(3, 50) == first
    assert EventGenerator(shape, seed=2).batches(3, 50) != first


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(sorted(SHAPES)), st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 60))
def test_truth(shape, seed, batches, events):
    """For any seed and size, what is said of each event can be checked against the events before it."""
    made = EventGenerator(shape, seed=seed, delay=DELAY).batches(batches, events)
    assert [len(batch) for batch in made.batches] == [events] * batches
    seen: dict[str, str] = {}
    latest, watermark = None, None
    for batch in made.batches:
        for event in batch:
            assert readable(event.text, shape) is not event.malformed
            assert event.duplicate == (seen.get(event.identity) == event.text)
            if event.malformed:
                continue
            seen[event.identity] = event.text
            assert event.late == (watermark is not None and event.event_time <= watermark)
            behind = latest is not None and event.event_time < latest
            assert event.out_of_order == (behind and not event.late)
            latest = max(latest or event.event_time, event.event_time)
        watermark = latest - DELAY if latest else None


def test_every_kind_is_there():
    """The shares make themselves felt: 600 events have some of each kind, and none where a share is 0."""
    made = EventGenerator("clicks", seed=3).batches(6, 100)
    kinds = ("late", "out_of_order", "duplicate", "malformed")
    assert all(made.count(kind) > 5 for kind in kinds)
    calm = EventGenerator("clicks", seed=3, late=0, duplicate=0, out_of_order=0, malformed=0).batches(6, 100)
    assert [calm.count(kind) for kind in kinds] == [0, 0, 0, 0]
    assert len(calm.in_time) == 600


def test_forms():
    """Texts, messages and rows have the events of each batch; rows leave the malformed ones out."""
    made = EventGenerator("orders", seed=4, malformed=0.2).batches(2, 40)
    assert [len(batch) for batch in made.texts()] == [40, 40]
    assert made.messages()[1][0]["value"] == made.texts()[1][0]
    assert made.messages()[0][0]["timestamp"] > datetime(2026, 1, 1, tzinfo=UTC)
    assert sum(len(batch) for batch in made.rows()) == 80 - made.count("malformed") < 80
    assert len(made.in_time) == len(made.distinct) - sum(e.late for e in made.distinct)


def test_wrong_arguments():
    """An unknown shape is refused with the known ones, and shares above 1 are refused."""
    with pytest.raises(UsageError, match="no shape 'visits'") as error:
        EventGenerator("visits", seed=0)
    assert "clicks" in error.value.remedy
    with pytest.raises(UsageError):
        EventGenerator("clicks", seed=0, late=0.6, duplicate=0.6)
