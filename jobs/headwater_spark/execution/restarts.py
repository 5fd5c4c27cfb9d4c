"""The one loop that restarts a flow: each remedy is offered the failure, and the first that helps decides how to continue.

Decision 0155.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headwater_spark.quarantine.unreadable_files import UnreadableFile


@dataclass(frozen=True)
class Start:
    """One start of a flow.

    Args:
        attempt: number of the attempt; the first is 1.
        seconds: to wait before it.
        reason: why the flow restarts within an attempt; None at the beginning of an attempt.
        reloaded: whether the attempt has already reloaded columns once.
        left_out: unreadable files that this start excludes.
    """

    attempt: int = 1
    seconds: float = 0.0
    reason: str | None = None
    reloaded: bool = False
    left_out: tuple[UnreadableFile, ...] = ()


# Takes the failure and the start that failed, and returns a start that may succeed; None where the remedy does not apply. It
# may raise an error that describes the failure better, which the remedies after it then get.
Remedy = Callable[[Exception, Start], Start | None]


def run_with_restarts(
    begin: Callable[[Start], None], remedies: Sequence[Remedy], stop: threading.Event
) -> Exception | None:
    """Call ``begin``, and again as long as a remedy helps; returns the final failure, None where it succeeded.

    Args:
        remedies: tried in this order.
        stop: set when nothing more may start; it ends a wait.
    """
    start: Start | None = Start()
    failure: Exception | None = None
    while start is not None:
        stop.wait(start.seconds)
        try:
            begin(start)
        except Exception as error:
            failure, start = (error, None) if stop.is_set() else _remedied(error, start, remedies)
        else:
            return None
    return failure


def _remedied(failure: Exception, start: Start, remedies: Sequence[Remedy]) -> tuple[Exception, Start | None]:
    for remedy in remedies:
        try:
            following = remedy(failure, start)
        except Exception as error:
            failure = error
        else:
            if following is not None:
                return failure, following
    return failure, None
