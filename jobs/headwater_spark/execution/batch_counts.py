"""How many rows a batch took in and kept out: as this run saw it, as its commit says, or as it was evaluated again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headwater_spark.delta_writes.sink_commits import SinkCommit
from headwater_spark.rules.expectations import Quality

RECOMPUTED, UNKNOWN = "RECOMPUTED", "UNKNOWN"
_NOT_THE_SAME = "evaluated again, the batch gives {now} rows and {written} were written: a source or the query has changed"
_NOT_SEEN = "no report of the batch was received"


@dataclass(frozen=True)
class Recount:
    """A batch that was evaluated again, without writing it.

    ``input_rows``: what was read of its sources; ``quality``: what its rules saw, None where nothing is counted.
    ``observed``: all observations of the query, by name. ``unknown``: why it could not be evaluated, else None.
    """

    input_rows: int | None = None
    quality: Quality | None = None
    observed: Mapping[str, Any] = field(default_factory=dict)
    unknown: str | None = None


@dataclass(frozen=True)
class BatchCounts:
    """What goes into the record of a batch.

    ``quality``: what the rules saw, None where there are none, or where that is not known (``quality_known``).
    ``origin``: RECOMPUTED where the batch was evaluated again for its counts, UNKNOWN where (some of) them can't be had,
    with the ``reason``; None where this run saw the batch.
    """

    input_rows: int | None
    quality: Quality | None
    quality_known: bool = True
    origin: str | None = None
    reason: str | None = None


def batch_counts(
    seen: BatchCounts,
    commit: SinkCommit | None,
    recount: Recount | None,
    *,
    has_rules: bool,
    appends: bool,
) -> BatchCounts:
    """Decide what is recorded of a batch.

    A batch that a killed driver had written is left out when it comes again: Spark then reports no rows, or observes zeros.
    Where the batch was judged, its commit has the counts. Else it was evaluated again; of a table that is appended to, that
    counts only if it gives as many rows as were written.

    Args:
        seen: what this run's own progress says of the batch.
        commit: the batch's commit to its table, None where there is none.
        recount: the batch evaluated again, None where that was not needed.
        has_rules: whether the table has rules.
        appends: whether each row that passes is a row of the commit.
    """
    if seen.quality is not None and seen.quality.rows > 0:
        return seen
    judged = commit.quality if commit is not None else None
    written = commit.rows if commit is not None else 0
    if recount is None:
        return _as_seen(seen, judged, written, has_rules=has_rules)
    known = judged is not None or not has_rules
    if recount.unknown is not None:
        return BatchCounts(None, judged, known, UNKNOWN, recount.unknown)
    if judged is not None:
        return BatchCounts(recount.input_rows, judged, origin=RECOMPUTED)
    counted = appends and (commit is None or commit.counted)
    if recount.quality is not None and counted and recount.quality.kept != written:
        reason = _NOT_THE_SAME.format(now=recount.quality.kept, written=written)
        return BatchCounts(None, None, known, UNKNOWN, reason)
    known = recount.quality is not None or not has_rules
    return BatchCounts(recount.input_rows, recount.quality, known, RECOMPUTED)


def _as_seen(seen: BatchCounts, judged: Quality | None, written: int, *, has_rules: bool) -> BatchCounts:
    """Without a recount: what this run saw, unless rows were written that it did not observe."""
    observed = seen.quality is not None or seen.input_rows == 0
    if observed and not written:
        return seen
    known = judged is not None or not has_rules
    whole = seen.input_rows is not None and known
    reason = None if whole else _NOT_SEEN
    return BatchCounts(seen.input_rows, judged, known, None if whole else UNKNOWN, reason)
