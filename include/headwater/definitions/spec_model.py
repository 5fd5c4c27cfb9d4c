"""What all parts of ``pipeline.yml`` have in common: no unknown key, and values of a few kinds."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationInfo, field_validator

from headwater.definitions.intervals import read_duration

_NUMBERS = (int, float, int | None, float | None)


class Strict(BaseModel):
    """A part of the spec: frozen, and an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_value(cls, value: object, info: ValidationInfo) -> object:
        """Refuse ``retries: yes``, which pydantic would take for 1."""
        field = cls.model_fields.get(info.field_name or "")
        if isinstance(value, bool) and field is not None and field.annotation in _NUMBERS:
            raise ValueError("a number is expected")
        return value


class WrongAt(ValueError):
    """What is wrong with several parts of the spec together. ``keys``: those of the part that is to be corrected."""

    def __init__(self, message: str, *keys: str | int) -> None:
        super().__init__(message)
        self.keys = keys


def _duration(value: object) -> object:
    """Read Spark's interval spelling ("30 seconds"); a number means seconds, and "PT30S" and "00:00:30" are left to pydantic.

    A length of time decides what is removed and when: whatever is not clearly one is refused, never guessed.
    """
    if isinstance(value, str):
        length = read_duration(value)
        if length is None and not (":" in value or value.lstrip("+-").startswith("P")):
            raise ValueError(_NO_LENGTH)
        return value if length is None else length
    if isinstance(value, bool) or (isinstance(value, int | float) and not value >= 0):
        raise ValueError(_NO_LENGTH)
    return value


def _not_negative(length: timedelta) -> timedelta:
    if length < timedelta(0):
        raise ValueError(_NO_LENGTH)
    return length


_NO_LENGTH = (
    "a length of time is a number from 0 with milliseconds, seconds, minutes, hours, days or weeks: 30 seconds, 7 days "
    "(months differ in length: say days)"
)
Duration = Annotated[timedelta, BeforeValidator(_duration), AfterValidator(_not_negative)]
