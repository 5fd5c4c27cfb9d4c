"""What of a function's code says that its query may be another one tomorrow."""

from __future__ import annotations

import datetime
from functools import partial
from typing import Any

import pytest

from headwater.definitions.clock_in_code import may_ask_the_clock

CUTOFF = "day < date'today'"


def _since() -> Any:
    return datetime.datetime.now(datetime.UTC)


def _plain(frame: Any) -> Any:
    return frame.where("day < date'2026-01-01' and note <> 'now'").groupBy("k").count()


class Query:
    """As a statement of a SQL source."""

    def __init__(self, text: str) -> None:
        self._text = text

    @property
    def written(self) -> str:
        """The text of the statement."""
        return self._text

    def __call__(self) -> None:
        """Nothing is run here."""


class Touchy:
    """As ``dbutils``: it refuses whatever it is asked for."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


touchy = Touchy()


@pytest.mark.parametrize(
    "function",
    [
        lambda frame: frame.where(frame.day < datetime.date.today()),  # noqa: DTZ011 - what people write
        lambda frame: frame.where("ts < timestamp_ntz ' Now '"),
        lambda frame: frame.where(CUTOFF),
        lambda frame: frame.where(frame.ts > _since()),
        lambda frame: [row for row in frame if _since()],
        partial(lambda text, frame: frame.where(text), "day = date'yesterday'"),
        Query("SELECT * FROM sales WHERE day = DATE 'today'"),
    ],
)
def test_the_clock_is_seen(function: Any) -> None:
    """In Python and in texts, in a function that it calls, a constant of its module, a SQL statement."""
    assert may_ask_the_clock(function)


@pytest.mark.parametrize("function", [_plain, partial(_plain, 1), Query("SELECT today FROM days"), len])
def test_nothing_of_the_kind(function: Any) -> None:
    """Days that stay, and columns that are called so in SQL, say nothing."""
    assert not may_ask_the_clock(function)


def test_objects_of_a_pipeline_are_asked_for_nothing() -> None:
    """What a function uses may refuse, or do anything, when an attribute of it is read."""
    assert not may_ask_the_clock(lambda frame: touchy.secrets.get("scope", frame))
    assert may_ask_the_clock(lambda frame: frame.where(touchy.day < CUTOFF))
