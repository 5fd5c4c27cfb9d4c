"""Starting a stream again after failures that pass."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from headwater.errors import UsageError
from headwater_spark.execution.failures import causes_of_error
from headwater_spark.messages.known_exceptions import PASSING, shows

_LOG = logging.getLogger(__name__)


def start_streaming_with_retry(
    start_function: Callable[[], StreamingQuery],
    max_retries: int = 3,
    retry_delay: float = 60,
    *,
    max_delay: float = 600,
    is_transient: Callable[[StreamingQueryException], bool] | None = None,
    sleep: Callable[[float], object] = time.sleep,
) -> None:
    """Start a stream, wait for its end, and start it again where it failed for a reason that passes.

    The traps of the form in guides: its loop also starts again after a normal end, it retries what fails the same way each
    time (a wrong column, a violated constraint), and three failures in a month end a stream for good. Here a normal end
    returns, only failures that pass are retried (a broker away, a conflict of writers; as updates of pipelines judge), the delay
    doubles, and a stream that has finished a batch since its last start has all its attempts again.

    Args:
        start_function: starts the query and returns it; called again for each attempt.
        max_retries: attempts in a row without a finished batch, the first one included.
        retry_delay: seconds before the second attempt; it doubles with each one after.
        max_delay: the longest delay in seconds.
        is_transient: whether another attempt may help; by default as an update judges.
        sleep: waits for so many seconds.

    Raises:
        StreamingQueryException: the failure does not pass, or the attempts are used up.
        UsageError: ``max_retries`` is less than 1.

    """
    if max_retries < 1:
        raise UsageError(f"max_retries={max_retries}", remedy="Give 1 or more: the first attempt counts.")
    passes = is_transient or may_pass
    attempt = 1
    while True:
        query = start_function()
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            attempt = 1 if has_finished_a_batch(query) else attempt
            if attempt >= max_retries or not passes(error):
                raise
            delay = min(retry_delay * 2 ** (attempt - 1), max_delay)
            attempt += 1
            _LOG.warning(
                "The stream failed; attempt %d of %d in %g s: %s", attempt, max_retries, delay, error
            )
            sleep(delay)
        else:
            return


def may_pass(error: StreamingQueryException) -> bool:
    """Whether a failure may be gone at the next attempt: a broker or a store away, a conflict of writers."""
    return shows(causes_of_error(error), PASSING)


def has_finished_a_batch(query: StreamingQuery) -> bool:
    """Whether the query has finished a batch since it was started."""
    return bool(query.recentProgress)
