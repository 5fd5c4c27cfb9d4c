"""The one loop in which a flow starts again: what failed is shown to each remedy, and the first that helps says how to go on.

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
        attempt: which try it is; the first is 1.
        seconds: to wait before it.
        reason: why the flow starts again within a try; None where a try begins.
        reloaded: whether the try has gone on once with columns that were read again.
        left_out: files that can't be read, which this start keeps out.
    """

    attempt: int = 1
    seconds: float = 0.0
    reason: str | None = None
    reloaded: bool = False
    left_out: tuple[UnreadableFile, ...] = ()


# From what failed, and the start that failed, to one that may be good; None where the remedy is for another failure. It may
# raise an error that says better what failed: the remedies behind it are shown that.
Remedy = Callable[[Exception, Start], Start | None]


def run_with_restarts(
    begin: Callable[[Start], None], remedies: Sequence[Remedy], stop: threading.Event
) -> Exception | None:
    """Call ``begin``, and again as long as a remedy helps; returns what it failed of in the end, None where it did not.

    Args:
        remedies: shown a failure in this order.
        stop: set when nothing more is to be begun; a wait ends with it.
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
