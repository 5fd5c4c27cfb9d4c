"""Whether a stream appends rows or gives its whole result anew with each batch."""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from headwater.definitions.flow import Flow
from headwater.errors import QueryFailed
from headwater_spark.loader.source_errors import describe


def output_mode(frame: DataFrame, flow: Flow) -> str:
    """``append`` where Spark can append the query's result, else ``complete`` (an aggregation without a watermark).

    In complete mode the table holds the whole result and is replaced by each batch, in one commit.

    Raises:
        QueryFailed: where Spark can do neither, with its reason.
    """
    reasons = {mode: _objection(frame, mode) for mode in ("append", "complete")}
    for mode, reason in reasons.items():
        if reason is None:
            return mode
    raise QueryFailed(
        f"Spark can't run the query of {flow.name!r} as a stream: {reasons['append']}",
        where=flow.location,
        remedy="Give the aggregation a watermark and a window over it, or declare a materialized view over a batch read.",
    )


def _objection(frame: DataFrame, mode: str) -> str | None:
    jvm = frame.sparkSession._jvm  # noqa: SLF001 - Spark's own check has no public face in Python
    modes = getattr(jvm, "org.apache.spark.sql.streaming.OutputMode")
    checker = getattr(jvm, "org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker")
    try:
        plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001
        checker.checkForStreaming(plan, modes.Append() if mode == "append" else modes.Complete())
    except AnalysisException as error:
        return describe(error).partition(": ")[2]
    return None
