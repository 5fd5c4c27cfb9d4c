"""What all sensors of conditions do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from airflow.sdk import BaseSensorOperator
from airflow.sdk.exceptions import AirflowFailException

from headwater.errors import HeadwaterError, UsageError
from headwater_airflow.conditions.condition import Condition
from headwater_airflow.triggers.condition import ConditionTrigger


class WaitingSensor(BaseSensorOperator, ABC):  # type: ignore[misc]  # Airflow's types are not followed
    """Looks once where the task runs, then waits in the triggerer: no worker and no JVM meanwhile.

    ``poke_interval`` and ``timeout`` are in seconds, as of any sensor; when the time is over, the task fails with
    AirflowSensorTimeout, or is skipped with ``soft_fail``. What can never come fails at once; what can't be looked at
    now is looked at again.
    """

    template_fields: Sequence[str] = ()

    def __init__(self, *, poke_interval: float = 30.0, **kwargs: Any) -> None:
        super().__init__(poke_interval=poke_interval, **kwargs)

    @abstractmethod
    def condition(self) -> Condition:
        """What is waited for, of the rendered fields; looks at nothing that may be away now.

        Raises:
            UsageError: a field, as it was rendered, has no value of its kind.
        """

    def execute(self, context: Any) -> dict[str, Any]:  # noqa: ARG002
        """Look once, then defer."""
        try:
            condition = self.condition()
        except HeadwaterError as error:
            raise AirflowFailException(str(error)) from error
        try:
            sighting = condition.look()
        except (HeadwaterError, OSError) as error:
            if isinstance(error, HeadwaterError) and not error.transient:
                raise AirflowFailException(str(error)) from error
            self.log.info(str(error))
        else:
            if sighting.met:
                return dict(sighting.payload)
            self.log.info(sighting.summary)
        trigger = ConditionTrigger.of(condition, float(self.poke_interval))
        self.defer(trigger=trigger, method_name="resume", timeout=timedelta(seconds=self.timeout))
        raise AssertionError  # defer raises

    def resume(self, context: Any, event: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        """Return what was found, or fail where waiting is in vain."""
        if "error" in event:
            raise AirflowFailException(event["error"])
        return event


def whole_number(name: str, value: int | str) -> int:
    """The number that a field was rendered to; raises UsageError, which names the field."""
    try:
        return int(value)
    except (TypeError, ValueError):
        raise UsageError(
            f"{name} has to be a whole number, and is {value!r}.",
            remedy=f"Check what the template of {name} gives: the result of another task may be empty, or not a number.",
        ) from None


def not_negative(name: str, value: float) -> float:
    """Return a limit of a sensor; raises ValueError if it is below 0."""
    if value < 0:
        raise ValueError(f"{name} must be 0 or more.")
    return value
