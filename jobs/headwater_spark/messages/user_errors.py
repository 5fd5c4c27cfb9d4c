"""Turns an exception of a user's function into an error that names the function and its line."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkException

from headwater.definitions.flow import Flow
from headwater.errors import HeadwaterError, QueryFailed, SourceFileFailed, UpdateFailed
from headwater_spark.messages.exception_text import Cause
from headwater_spark.messages.known_exceptions import hint_for
from headwater_spark.messages.source_errors import describe, name_meant, user_location


@contextmanager
def user_errors(flow: Flow, labels: Collection[str], *, live: bool) -> Iterator[None]:
    """Turn an exception of a flow's function into an error with its name and the user's line. ``labels``: the pipeline's sources."""
    try:
        yield
    except HeadwaterError as error:
        error.where = error.where or str(user_location(error.__traceback__, labels) or flow.location or "")
        raise
    except (Exception, SystemExit) as error:  # an exit would end the update as if all were well
        where = user_location(error.__traceback__, labels) or flow.location
        if isinstance(error, AnalysisException | IllegalArgumentException):
            raise QueryFailed(
                f"Spark can't run the query of {flow.name!r}: {describe(error).partition(': ')[2]}",
                where=where,
                remedy=hint_for([Cause(type(error).__name__, str(error))])
                or "Correct the query and run `python -m headwater validate`.",
            ) from error
        if live and isinstance(error, PySparkException):
            raise UpdateFailed(
                f"The query of {flow.name!r} could not be made: {describe(error)}", where=where
            ) from error
        raise SourceFileFailed(
            f"The function of {flow.name!r} raised {describe(error)}",
            where=where,
            remedy=hint_for([Cause(type(error).__name__, str(error))])
            or name_meant(error)
            or "Correct it and run again.",
        ) from error
