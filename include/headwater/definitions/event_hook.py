from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headwater.definitions.source_location import SourceLocation


@dataclass(frozen=True)
class EventHook:
    """A user's function that is called with events of the log, as Lakeflow's ``on_event_hook``.

    ``max_failures``: how many calls in a row may fail before it is disabled; None for any number.
    """

    name: str
    function: Callable[[dict[str, Any]], Any]
    max_failures: int | None = None
    location: SourceLocation | None = None
