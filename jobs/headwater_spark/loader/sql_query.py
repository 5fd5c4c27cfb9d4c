"""The query of a statement in a SQL source, as the function of a flow."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headwater.errors import HeadwaterError, QueryFailed
from headwater.sql_sources.source import Fragment, Place
from headwater.sql_sources.statements import ColumnLabel
from headwater_spark.facade.pipeline_session import PipelineSession
from headwater_spark.messages.exception_text import Cause
from headwater_spark.messages.known_exceptions import hint_for
from headwater_spark.messages.source_errors import describe
from headwater_spark.plans.names import quoted

# How Spark names a place in a text.
_POSITION = re.compile(r"line (\d+),? pos (\d+)")


@dataclass(frozen=True, eq=False)
class SqlQuery:
    """Runs a statement's query when it is called.

    ``name``: of what it fills. ``qualified``: completes the names in the query. ``labels``: the columns' names, where the
    statement has them.
    """

    session: PipelineSession
    name: str
    query: Fragment
    qualified: Callable[[str], str]
    labels: tuple[ColumnLabel, ...] = ()

    @property
    def __name__(self) -> str:
        return self.name

    @property
    def written(self) -> str:
        """The text of the query."""
        return self.query.text

    def __call__(self) -> DataFrame:
        """The rows of the query; raises QueryFailed with the place in the user's file."""
        place = self.query.place
        # As far down and to the right as in the file, so that Spark's own places are those of the file.
        text = "\n" * (place.line - 1) + " " * (place.column - 1) + self.query.text
        try:
            frame = self.session.query_of_source(text, self.qualified)
        except HeadwaterError as error:
            error.where = error.where or str(place)
            raise
        except AnalysisException as error:
            raise QueryFailed(
                f"Spark can't run the query of {self.name!r}: {_said(error)}",
                where=_place(error, place, text),
                remedy=hint_for([Cause(type(error).__name__, str(error))])
                or "Correct the query and run `python -m headwater validate`.",
            ) from error
        return self._labelled(frame) if self.labels else frame

    def _labelled(self, frame: DataFrame) -> DataFrame:
        if len(frame.columns) != len(self.labels):
            raise QueryFailed(
                f"{self.name!r} names {len(self.labels)} columns, and its query returns {len(frame.columns)}: "
                f"{', '.join(frame.columns)}.",
                where=self.query.place,
                remedy="Name each column of the query once, or none.",
            )
        return frame.select(*map(_labelled, frame.columns, self.labels))


def _labelled(name: str, label: ColumnLabel) -> Column:
    metadata = {"comment": label.comment} if label.comment else {}
    return F.col(quoted(name)).alias(label.name, metadata=metadata)


def _said(error: AnalysisException) -> str:
    """What Spark says, without the place, which the error names itself."""
    return _POSITION.sub("", describe(error).partition(": ")[2]).strip(" ;()")


def _place(error: AnalysisException, place: Place, text: str) -> Place:
    """Where Spark says that the fault is. Names of datasets have given way to longer ones: a column is only near the place."""
    match = _POSITION.search(str(error))
    if match is None or int(match[1]) < place.line:
        return place
    line = text.split("\n")[int(match[1]) - 1 : int(match[1])]
    return Place(place.label, int(match[1]), min(int(match[2]) + 1, len(line[0]) + 1 if line else 1))
