"""Names of Lakeflow's face that this version knows and can't carry out: refused where they are used."""

from __future__ import annotations

from typing import Any, NoReturn

from headwater.definitions.source_location import caller_location
from headwater.errors import UnsupportedArgument


def _refuse(name: str, remedy: str) -> NoReturn:
    raise UnsupportedArgument(
        f"dp.{name} is not there in this version.", where=caller_location(), remedy=remedy
    )


def on_event_hook(*_arguments: Any, **_named: Any) -> NoReturn:
    """Refused: hooks on events are not there yet."""
    _refuse("on_event_hook", "Read the event log instead: `python -m headwater events DIR --json`.")
