"""What all parts of ``pipeline.yml`` have in common: no unknown key, and values of a few kinds."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict

from headwater.definitions.intervals import read_duration


class Strict(BaseModel):
    """A part of the spec: frozen, and an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class WrongAt(ValueError):
    """What is wrong with several parts of the spec together. ``keys``: those of the part that is to be corrected."""

    def __init__(self, message: str, *keys: str | int) -> None:
        super().__init__(message)
        self.keys = keys


def _duration(value: object) -> object:
    """Read Spark's interval spelling ("30 seconds"); anything else is left to pydantic."""
    duration = read_duration(value) if isinstance(value, str) else None
    return value if duration is None else duration


Duration = Annotated[timedelta, BeforeValidator(_duration)]
