"""The loop in which a flow starts again, without Spark: what fails, which remedies help, and how it ends."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from headwater_spark.execution.restarts import Start, run_with_restarts


class Passing(Exception):
    """Fails, and may pass."""


class Columns(Exception):
    """The columns changed."""


class ColumnsAgain(Exception):
    """They changed a second time."""


def reload(failure: Exception, start: Start) -> Start | None:
    """Once in a try; then it says better what failed."""
    if not isinstance(failure, Columns):
        return None
    if start.reloaded:
        raise ColumnsAgain
    return Start(start.attempt, reason="columns", reloaded=True)


def later(failure: Exception, start: Start) -> Start | None:
    """Three tries at most."""
    return (
        Start(start.attempt + 1)
        if isinstance(failure, Passing | ColumnsAgain) and start.attempt < 3
        else None
    )


def starts(*ends: Exception | None, stop_at: int = 99, remedies=(reload, later)):
    """All starts of a flow that ends in this way, one after the other; and what it failed of in the end."""
    seen: list[Start] = []
    stop = threading.Event()

    def begin(start: Start) -> None:
        seen.append(start)
        if len(seen) >= stop_at:
            stop.set()
        end = ends[len(seen) - 1] if len(seen) <= len(ends) else None
        if end is not None:
            raise end

    return seen, run_with_restarts(begin, remedies, stop)


def test_what_is_done_starts_once():
    """A flow that does not fail has one start."""
    assert starts() == ([Start()], None)


def test_without_a_remedy_it_fails():
    """What no remedy helps against is what it failed of."""
    wrong = ValueError("wrong")
    assert starts(wrong) == ([Start()], wrong)


def test_the_first_remedy_that_helps():
    """Each failure goes to its remedy; a further try begins as the first one did."""
    seen, failure = starts(Columns(), Passing(), Columns())
    assert failure is None
    assert seen == [
        Start(),
        Start(reason="columns", reloaded=True),
        Start(2),
        Start(2, reason="columns", reloaded=True),
    ]


def test_a_remedy_may_say_better_what_failed():
    """Its error is shown to the remedies behind it, and is the failure where none of them helps."""
    seen, failure = starts(Columns(), Columns(), Columns(), Columns(), Columns(), Columns())
    assert [start.attempt for start in seen] == [1, 1, 2, 2, 3, 3]
    assert isinstance(failure, ColumnsAgain)


def test_no_start_after_a_stop():
    """What fails while it is told to stop is not started again."""
    passing = Passing()
    assert starts(passing, stop_at=1) == ([Start()], passing)


def test_a_stop_ends_a_wait():
    """A wait ends at once; the start that follows sees the stop itself."""
    stop, seen = threading.Event(), []

    def begin(start: Start) -> None:
        seen.append(start.seconds)
        threading.Timer(0.05, stop.set).start()
        raise Passing

    began = time.monotonic()
    failure = run_with_restarts(begin, (lambda _, start: replace(start, seconds=30.0),), stop)
    assert isinstance(failure, Passing)
    assert seen == [0.0, 30.0]
    assert time.monotonic() - began < 10


@given(st.lists(st.sampled_from([Passing, Columns, ValueError, None]), max_size=12))
def test_it_always_ends(ends):
    """Whatever happens in whichever order: three tries at most, two starts in each, and a failure is one that happened."""
    seen, failure = starts(*[end() if end is not None else None for end in ends])
    assert len(seen) <= 6
    assert seen[-1].attempt <= 3
    assert failure is None or type(failure) in (Passing, ValueError, Columns, ColumnsAgain)
    if failure is None:
        assert len(seen) > len(ends) or ends[len(seen) - 1] is None
