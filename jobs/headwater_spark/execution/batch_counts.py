"""How many rows a batch read and wrote: observed by this run, recorded in its commit, or counted by evaluating it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headwater_spark.delta_writes.batch_commits import BatchCommit
from headwater_spark.rules.expectations import Quality

RECOMPUTED, UNKNOWN = "RECOMPUTED", "UNKNOWN"
_NOT_THE_SAME = "evaluated again, the batch gives {now} rows and {written} were written: a source or the query has changed"
_NO_PROGRESS = "no report of the batch was received"


@dataclass(frozen=True)
class Recount:
    """The result of evaluating a batch again, without writing it.

    ``input_rows``: read from its sources; ``quality``: the counts of its rules, None where nothing is counted.
    ``observed``: all observations of the query, by name. ``unknown``: why it could not be evaluated, otherwise None.
    """

    input_rows: int | None = None
    quality: Quality | None = None
    observed: Mapping[str, Any] = field(default_factory=dict)
    unknown: str | None = None


@dataclass(frozen=True)
class BatchCounts:
    """The counts in the record of a batch.

    ``quality``: the counts of the rules, None where there are no rules, or the counts are not known (``quality_known``).
    ``origin``: RECOMPUTED where the batch was evaluated again for its counts, UNKNOWN where some of them are not known,
    with the ``reason``; None where this run observed the batch.
    """

    input_rows: int | None
    quality: Quality | None
    quality_known: bool = True
    origin: str | None = None
    reason: str | None = None


def batch_counts(
    observed: BatchCounts,
    commit: BatchCommit | None,
    recount: Recount | None,
    *,
    has_rules: bool,
    appends: bool,
) -> BatchCounts:
    """Decide what is recorded of a batch.

    A batch that a killed driver had written is skipped when it is repeated: Spark then reports no rows, or observes zeros.
    Where the batch was judged, its commit has the counts. Otherwise it was evaluated again; for a table that is appended
    to, that is accepted only if it gives as many rows as were written.

    Args:
        observed: what this run's own progress says about the batch.
        commit: the batch's commit to its table, None where there is none.
        recount: the batch evaluated again, None where that was not needed.
        has_rules: whether the table has rules.
        appends: whether each row that passes is a row of the commit.
    """
    if observed.quality is not None and observed.quality.rows > 0:
        return observed
    judged = commit.quality if commit is not None else None
    written = commit.rows if commit is not None else 0
    if recount is None:
        return _without_recount(observed, judged, written, has_rules=has_rules)
    quality_known = judged is not None or not has_rules
    if recount.unknown is not None:
        return BatchCounts(None, judged, quality_known, UNKNOWN, recount.unknown)
    if judged is not None:
        return BatchCounts(recount.input_rows, judged, origin=RECOMPUTED)
    counted = appends and (commit is None or commit.counted)
    if recount.quality is not None and counted and recount.quality.accepted != written:
        reason = _NOT_THE_SAME.format(now=recount.quality.accepted, written=written)
        return BatchCounts(None, None, quality_known, UNKNOWN, reason)
    quality_known = recount.quality is not None or not has_rules
    return BatchCounts(recount.input_rows, recount.quality, quality_known, RECOMPUTED)


def _without_recount(
    observed: BatchCounts, judged: Quality | None, written: int, *, has_rules: bool
) -> BatchCounts:
    """What this run observed, unless rows were written that it did not observe."""
    if not written and (observed.quality is not None or observed.input_rows == 0):
        return observed
    quality_known = judged is not None or not has_rules
    if observed.input_rows is not None and quality_known:
        return BatchCounts(observed.input_rows, judged, quality_known)
    return BatchCounts(observed.input_rows, judged, quality_known, UNKNOWN, _NO_PROGRESS)
