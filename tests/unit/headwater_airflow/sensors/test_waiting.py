"""When a sensor is done at once, waits in the triggerer, or fails."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred

from headwater.errors import HeadwaterError, InvalidSpec, UsageError
from headwater.storage.conditions import StoreUnreachable
from headwater_airflow.conditions.condition import Condition, Sighting
from headwater_airflow.sensors.freshness import FreshnessSensor
from headwater_airflow.sensors.lag import LagSensor
from headwater_airflow.sensors.waiting import WaitingSensor, not_negative, whole_number

MET = Sighting(met=True, summary="It is there.", payload={"version": 3})


@dataclass(frozen=True)
class Seen(Condition):
    """Gives what it was made with."""

    answer: Any = None

    def look(self) -> Sighting:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[no-any-return]


class Sensor(WaitingSensor):
    """Waits for ``Seen``."""

    def __init__(self, *, answer: Any, error: HeadwaterError | None = None, **more: Any) -> None:
        super().__init__(**more)
        self.answer, self.error = answer, error

    def condition(self) -> Condition:
        if self.error is not None:
            raise self.error
        return Seen(self.answer)


def sensor(answer: Any, error: HeadwaterError | None = None) -> Sensor:
    """A sensor that looks every five seconds, for 90 at the longest."""
    return Sensor(task_id="wait", poke_interval=5.0, timeout=90.0, answer=answer, error=error)


def test_what_is_there_needs_no_triggerer():
    """The first look is made where the task runs, and its result is the task's."""
    assert sensor(MET).execute({}) == {"version": 3}


@pytest.mark.parametrize(
    "answer", [Sighting(met=False, summary="Not yet."), StoreUnreachable("Away."), OSError("stale")]
)
def test_what_may_come_is_waited_for(answer: Any):
    """No worker waits; the triggerer looks as often, and as long, as the sensor says in seconds."""
    with pytest.raises(TaskDeferred) as deferral:
        sensor(answer).execute({})
    assert (deferral.value.timeout, deferral.value.method_name) == (timedelta(seconds=90), "resume")
    assert (deferral.value.trigger.kind, deferral.value.trigger.poll_seconds) == ("Seen", 5.0)


@pytest.mark.parametrize(
    ("answer", "error"),
    [(InvalidSpec("There is no such table."), None), (MET, UsageError("version has no number."))],
)
def test_what_can_never_come_fails_at_once(answer: Any, error: HeadwaterError | None):
    """A table that there is not, or a field without a value, is no reason to wait, nor to try again."""
    with pytest.raises(AirflowFailException):
        sensor(answer, error).execute({})


def test_how_the_triggerer_ends_it():
    """What it has seen is the result; where waiting is in vain, the task fails and is not retried."""
    assert sensor(MET).resume({}, {"version": 4}) == {"version": 4}
    with pytest.raises(AirflowFailException, match="made anew"):
        sensor(MET).resume({}, {"error": "The table was made anew."})


def test_limits_of_zero_are_limits():
    """No lag and no age at all can be waited for; less than none, or nothing, can't."""
    assert not_negative("max_seconds", 0) == 0
    with pytest.raises(ValueError, match="max_seconds must be 0 or more"):
        not_negative("max_seconds", -1)
    lag = LagSensor(task_id="lag", pipeline="shop", max_records=0)
    assert lag.condition().limits == {"records": 0}
    for limits in ({}, {"max_files": -1}, {"max_files": 1, "max_records": -1}):
        with pytest.raises(ValueError, match="0 or more"):
            LagSensor(task_id="lag", pipeline="shop", **limits)
    with pytest.raises(UsageError, match="needs a dataset"):
        FreshnessSensor(task_id="fresh", pipeline="shop", max_seconds=1, event_time="at")


def test_a_field_that_was_rendered_is_a_number():
    """A template gives text; one that gives none is named."""
    assert whole_number("version", "7") == 7
    for value in ("", "7.5", None):
        with pytest.raises(UsageError, match="version has to be a whole number"):
            whole_number("version", value)  # type: ignore[arg-type]
