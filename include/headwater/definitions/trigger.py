from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True)
class AvailableNow:
    """Process what is there when the update starts, in as many batches as the limits ask for, then end."""


@dataclass(frozen=True)
class ProcessingTime:
    """Look for new data every ``interval``, and end cleanly at a batch boundary after ``run_for``."""

    interval: timedelta
    run_for: timedelta


@dataclass(frozen=True)
class Continuous:
    """Keep every stream running, each with its own trigger interval, until somebody stops the update."""


Trigger = AvailableNow | ProcessingTime | Continuous
