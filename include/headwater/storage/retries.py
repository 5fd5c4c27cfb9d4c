"""How long requests to an object store are tried: by a driver, by whoever only looks, and by a lease."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any


@dataclass(frozen=True)
class Tries:
    """How often a request is repeated, for how long in all, and how long one may take.

    Pauses are drawn, and each lies between the first and a multiple of the one before it: with the client's own settings, eight
    tries were over after two seconds. ``first_pause`` and ``longest_pause``: None for the client's own.
    """

    most: int
    in_all: timedelta
    request_timeout: timedelta = timedelta(seconds=30)
    first_pause: timedelta | None = None
    longest_pause: timedelta | None = None

    def config(self) -> dict[str, Any]:
        """As ``retry_config`` of obstore."""
        pauses = {"init_backoff": self.first_pause, "max_backoff": self.longest_pause, "base": 3}
        return {
            "max_retries": self.most,
            "retry_timeout": self.in_all,
            **({} if self.first_pause is None else {"backoff": pauses}),
        }


# Longer than a server takes to start again.
DRIVERS = Tries(
    100, timedelta(seconds=45), first_pause=timedelta(milliseconds=250), longest_pause=timedelta(seconds=5)
)
# Whoever only looks (a page, a sensor, a command) says after some seconds that the server is away.
LOOKS = Tries(8, timedelta(seconds=60))
# A renewal of a lease that hangs is late: it gives up early, and the next one tries again.
LEASES = Tries(1, timedelta(seconds=5), request_timeout=timedelta(seconds=5))

_waits = False


def of_this_process() -> Tries:
    """How long this process tries all requests but those of leases."""
    return DRIVERS if _waits else LOOKS


def wait_for_servers() -> None:
    """Have this process try its requests until a server has started again: it is a driver, whose work would be lost."""
    global _waits
    _waits = True


def waited_in_vain(reason: str) -> None:
    """Have the other requests of this process give up soon once one was tried for so long: what is left would take minutes.

    Args:
        reason: obstore's text about the request that failed; a lease's, which gives up early by itself, says another limit.
    """
    global _waits
    if f"max_retries: {DRIVERS.most}," in reason:
        _waits = False
