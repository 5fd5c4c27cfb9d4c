"""Hooks: the user's functions that are called with events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from headwater.declarations.callables import check_callable
from headwater.declarations.keywords import checked_arguments
from headwater.definitions.event_hook import EventHook
from headwater.definitions.source_location import caller_location, function_location
from headwater.errors import UnsupportedArgument
from headwater.graph.registry import active_registry

Function = TypeVar("Function", bound=Callable[..., Any])


@checked_arguments
def on_event_hook(
    user_event_hook_fn: Function | None = None, max_allowable_consecutive_failures: int | None = None
) -> Any:
    """Call the decorated function with each event of the log, beside the update (Lakeflow's event hooks).

    Args:
        max_allowable_consecutive_failures: how many calls in a row may raise before the function is not called any more
            in this update; None: it is called whatever happens.

    The function takes the event as a dict with the columns of the log; ``details`` is a dict too. It gets events that
    are written and whose form is stable, in order, and not of what hooks themselves do (``hook_progress``). What it
    returns is ignored. Raises UnsupportedArgument where it could not be called.
    """
    where = caller_location()
    limit = max_allowable_consecutive_failures
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise UnsupportedArgument(
            f"dp.on_event_hook: max_allowable_consecutive_failures must be a whole number from 0, or None; not {limit!r}.",
            where=where,
            remedy="0 disables the hook at its first failure, None never.",
        )

    def decorate(function: Function) -> Function:
        registry = active_registry()
        if registry is None:
            return function
        location = function_location(function) or where
        check_callable("dp.on_event_hook", function, ({},), "one argument, the event", location)
        registry.add_hook(EventHook(function.__name__, function, limit, location))
        return function

    return decorate if user_event_hook_fn is None else decorate(user_event_hook_fn)
