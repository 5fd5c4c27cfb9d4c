"""A stream is started again where that can help, and no oftener."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from pyspark.errors import StreamingQueryException

from headwater.errors import UsageError
from headwater_spark.streaming.retries import start_streaming_with_retry

AWAY = "java.net.ConnectException: Connection refused"


@dataclass
class Stream:
    """A query that ends as it is told; ``batches``: how many it finishes before."""

    failure: str | None = None
    batches: int = 0

    @property
    def recentProgress(self) -> list[int]:  # noqa: N802
        return list(range(self.batches))

    def awaitTermination(self) -> None:  # noqa: N802
        if self.failure:
            raise StreamingQueryException(self.failure)


@dataclass
class Starts:
    """Starts one stream after the other; a call too many fails."""

    streams: list[Stream]
    waits: list[float] = field(default_factory=list)
    started: int = 0

    def __call__(self) -> Stream:
        self.started += 1
        return self.streams[self.started - 1]

    def run(self, **options: object) -> None:
        passes = lambda error: AWAY in str(error)  # noqa: E731
        start_streaming_with_retry(self, sleep=self.waits.append, is_transient=passes, **options)  # type: ignore[arg-type]


def test_a_normal_end_is_the_end():
    """A stream that ends well is not started again, as the form in guides would."""
    starts = Starts([Stream(), Stream()])
    starts.run()
    assert (starts.started, starts.waits) == (1, [])


def test_failures_that_pass():
    """The delay doubles up to the longest, and the last failure is raised."""
    starts = Starts([Stream(AWAY), Stream(AWAY), Stream(AWAY), Stream()])
    starts.run(max_retries=4, retry_delay=60, max_delay=200)
    assert (starts.started, starts.waits) == (4, [60, 120, 200])
    starts = Starts([Stream(AWAY)] * 3)
    with pytest.raises(StreamingQueryException):
        starts.run()
    assert (starts.started, starts.waits) == (3, [60, 120])


def test_other_failures():
    """What fails the same way each time is raised at once."""
    starts = Starts([Stream("UNRESOLVED_COLUMN"), Stream()])
    with pytest.raises(StreamingQueryException):
        starts.run()
    assert (starts.started, starts.waits) == (1, [])


def test_progress_counts():
    """A stream that has finished a batch has all its attempts again."""
    starts = Starts([Stream(AWAY), Stream(AWAY, batches=5), Stream(AWAY, batches=5), Stream()])
    starts.run(max_retries=2, retry_delay=1)
    assert (starts.started, starts.waits) == (4, [1, 1, 1])


def test_no_attempt():
    """Less than one attempt is an error of the caller's."""
    with pytest.raises(UsageError):
        Starts([]).run(max_retries=0)
